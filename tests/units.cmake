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
file(GLOB POSENC_FORMAT_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/formats/*.c)
set(short_memory -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=free)
posenc_test(no_memory SOURCES ${core} ${POSENC_FORMAT_SOURCES} LIBS PkgConfig::JSON_C ${short_memory})
posenc_test(readers_no_memory SOURCES ${core} ${POSENC_FORMAT_SOURCES} LIBS PkgConfig::JSON_C ${short_memory})
posenc_test(entry_list SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(gguf SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(json SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(safetensors SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(tensor_set SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(model_path SOURCES ${model} LIBS PkgConfig::JSON_C)
posenc_test(reader_memory SOURCES ${model} LIBS PkgConfig::JSON_C)
# Files written by Python, and published ones, through both readers.
add_executable(dump_readers dump_readers.c ${model})
target_include_directories(dump_readers PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(dump_readers PRIVATE posenc_flags posenc PkgConfig::JSON_C)
add_test(NAME readers_python
  COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/readers_python.py $<TARGET_FILE:dump_readers> ${PROJECT_SOURCE_DIR})
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
posenc_test(sinusoidal SOURCES oracle.c LIBS mpfr gmp)
posenc_test(alibi SOURCES oracle.c LIBS mpfr gmp)
posenc_test(table)
posenc_test(diagnosis)
posenc_test(vectors SOURCES vector_case.c LIBS PkgConfig::JSON_C)

# Once for every CPU level; those that this machine lacks skip by name.
posenc_test(fast_rows SOURCES ${core})
posenc_test(rotate_kernels SOURCES ${core})
foreach(name fast_rows rotate_kernels alibi)
  foreach(level scalar neon avx2 avx512 avx512bf16)
    add_test(NAME ${name}_${level} COMMAND test_${name} ${level})
    set_tests_properties(${name}_${level} PROPERTIES ENVIRONMENT "CMOCKA_MESSAGE_OUTPUT=TAP;POSENC_CPU=${level}")
  endforeach()
endforeach()
