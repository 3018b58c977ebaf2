# Checks of the tree and of what a build gives away, and the examples as tests; each prints TAP or is
# judged by its exit status. What does not depend on the compiler runs once, in the preset with gcc
# and shared libraries.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# posenc_check(name timeout command...)
function(posenc_check name timeout)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout})
endfunction()

set(checks ${CMAKE_CURRENT_SOURCE_DIR})
posenc_check(layers 60 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_layers.py ${PROJECT_SOURCE_DIR})
posenc_check(readme 60 ${Python3_EXECUTABLE} ${checks}/check_readme.py
  ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/examples/readme_example.c)

if(POSENC_EXAMPLES)
  posenc_check(example_interview_challenge 60 example_interview_challenge)
  posenc_check(example_positional_encoding 60 example_positional_encoding)
  posenc_check(example_readme_example 60 example_readme_example)
  posenc_check(example_shift_error 60 example_shift_error)
  posenc_check(tiny_llama 300 ${Python3_EXECUTABLE} ${checks}/test_tiny_llama.py $<TARGET_FILE:example_tiny_llama>
    $<TARGET_FILE:posenc_program>)
endif()

if(BUILD_SHARED_LIBS)
  posenc_check(exports 60 sh ${checks}/check_exports.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
endif()

if(BUILD_SHARED_LIBS AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  posenc_check(proofs 600 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/proofs/check_proofs.py)
  posenc_check(install 300 sh ${checks}/check_install.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  posenc_check(python 1800 sh ${checks}/check_python.sh ${PROJECT_SOURCE_DIR})
  posenc_check(one_file 600 sh ${checks}/check_one_file.sh ${PROJECT_SOURCE_DIR})
  posenc_check(same_bytes 900 sh ${checks}/check_same_bytes.sh ${PROJECT_SOURCE_DIR})
  posenc_check(neon 600 sh ${checks}/check_neon.sh ${PROJECT_SOURCE_DIR})
  posenc_check(mutants 3600 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/mutants.py --jobs 2 --every 3)
  set_tests_properties(mutants PROPERTIES PROCESSORS 2 ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
  posenc_check(bench 600 posenc_program bench --quick) # compares what it has timed; asserts no times
endif()
