# The list of unit tests.

# The objects of the library posenc, for tests of its hidden penc_ functions: a shared library does not
# give them away.
set(core $<TARGET_OBJECTS:posenc>)

# The same of posenc-model.
set(model $<TARGET_OBJECTS:posenc-model>)

posenc_test(frequencies SOURCES oracle.c LIBS mpfr gmp)
posenc_test(memory_map SOURCES ${core})
posenc_test(wide SOURCES oracle.c ${core} LIBS mpfr gmp)
posenc_test(angles SOURCES oracle.c ${core} LIBS mpfr gmp)
posenc_test(contracts SOURCES contracts.c ladders.c oracle.c ${core} LIBS mpfr gmp)
posenc_test(kernel_contracts SOURCES contracts.c ladders.c oracle.c ${core} LIBS mpfr gmp)
posenc_test(base SOURCES oracle.c ${core} LIBS mpfr gmp)
# --wrap reaches only what is linked into the test itself.
file(GLOB POSENC_MODEL_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/formats/*.c
  ${PROJECT_SOURCE_DIR}/src/model/*.c ${PROJECT_SOURCE_DIR}/src/checkpoint/*.c)
set(short_memory -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=free)
foreach(name no_memory readers_no_memory)
  posenc_test(${name} SOURCES ${core} ${PROJECT_SOURCE_DIR}/src/base/arena.c ${POSENC_MODEL_SOURCES}
    LIBS PkgConfig::JSON_C ${short_memory})
  target_include_directories(test_${name} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  add_dependencies(test_${name} models_table)
endforeach()
posenc_test(entry_list SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(gguf SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(gguf_refused SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(json SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(safetensors SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(file_kind)
posenc_test(model)
posenc_test(model_gguf)
posenc_test(model_warnings LIBS PkgConfig::JSON_C)
posenc_test(tensor_set SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(model_path SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(reader_memory SOURCES ${model} LIBS PkgConfig::JSON_C)
# Files written by Python, and published ones, through both readers.
add_executable(dump_readers dump_readers.c ${model})
target_include_directories(dump_readers PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(dump_readers PRIVATE posenc_flags posenc PkgConfig::JSON_C)
add_test(NAME readers_python
  COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/readers_python.py $<TARGET_FILE:dump_readers> ${PROJECT_SOURCE_DIR})
posenc_test(file_rewrite SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(npy)
posenc_test(npy_read)
posenc_test(npy_write)
add_test(NAME npy_numpy
  COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/npy_numpy.py $<TARGET_FILE:test_npy>)
posenc_test(rotate SOURCES oracle.c LIBS mpfr gmp)
posenc_test(rotate_laws SOURCES oracle.c LIBS mpfr gmp)
posenc_test(rotate_refused SOURCES oracle.c LIBS mpfr gmp)
find_package(Threads REQUIRED)
posenc_test(rotate_rows SOURCES oracle.c LIBS mpfr gmp Threads::Threads)
posenc_test(rotate_output SOURCES oracle.c LIBS mpfr gmp)
posenc_test(rotate_all SOURCES oracle.c LIBS mpfr gmp)
find_package(OpenMP QUIET COMPONENTS C) # without it the same test runs in one thread
posenc_test(rotate_openmp SOURCES oracle.c LIBS mpfr gmp $<$<BOOL:${OpenMP_C_FOUND}>:OpenMP::OpenMP_C>)
# LLVM's OpenMP library keeps what its threads have allocated.
set_tests_properties(rotate_openmp PROPERTIES ENVIRONMENT_MODIFICATION
  "LSAN_OPTIONS=set:suppressions=${CMAKE_CURRENT_LIST_DIR}/leaks_of_others.txt:print_suppressions=0")
posenc_test(sinusoidal SOURCES oracle.c LIBS mpfr gmp)
posenc_test(alibi SOURCES oracle.c LIBS mpfr gmp)
posenc_test(table)
posenc_test(compare_sides)
posenc_test(diagnosis)
posenc_test(vectors SOURCES vector_case.c LIBS PkgConfig::JSON_C)

# Once for every CPU level; those that this machine lacks skip by name.
posenc_test(fast_rows SOURCES ${core})
posenc_test(rotate_kernels SOURCES ${core})
posenc_test(query_scale SOURCES oracle.c LIBS mpfr gmp)
posenc_test(head_kernels SOURCES ${core})
posenc_test(norm_rotate SOURCES oracle.c LIBS mpfr gmp)
posenc_test(cache_append SOURCES oracle.c LIBS mpfr gmp)
posenc_test(cache_shift SOURCES oracle.c LIBS mpfr gmp)
posenc_test(cache_refused SOURCES oracle.c LIBS mpfr gmp)
foreach(name fast_rows rotate_kernels alibi head_kernels norm_rotate cache_append cache_shift)
  foreach(level scalar neon avx2 avx512 avx512bf16)
    add_test(NAME ${name}_${level} COMMAND test_${name} ${level})
    set_tests_properties(${name}_${level} PROPERTIES ENVIRONMENT "CMOCKA_MESSAGE_OUTPUT=TAP;POSENC_CPU=${level}")
  endforeach()
endforeach()

posenc_test(dequantize SOURCES ${model} LIBS PkgConfig::JSON_C)
target_include_directories(test_dequantize PRIVATE ${PROJECT_SOURCE_DIR}/data)
posenc_test(conversion)
posenc_test(conversion_write)
posenc_test(pair_powers)
posenc_test(pair_verdict SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(head_rows SOURCES ${PROJECT_SOURCE_DIR}/src/checkpoint/head_rows.c)
target_include_directories(test_head_rows PRIVATE ${PROJECT_SOURCE_DIR}/data)
