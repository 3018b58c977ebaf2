#!/bin/sh
# An installed posenc is usable: check_install.sh BUILD_DIR SOURCE_DIR
#
# Installs a build into a temporary folder and builds README's example against it through pkg-config
# and through CMake's find_package; compiles the headers as C++; looks at what the library needs.
# What needs pkg-config or g++ is skipped without them. Prints TAP. SPDX-License-Identifier: MIT
set -eu

[ $# -eq 2 ] || {
    echo "usage: check_install.sh BUILD_DIR SOURCE_DIR" >&2
    exit 2
}
build=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
# shellcheck source=tests/tap.sh
. "$source/tests/tap.sh"
prefix=$work/prefix
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
compiler=$(cached CMAKE_C_COMPILER)
generator=$(cached CMAKE_GENERATOR)
unset DESTDIR

# The example prints cos(1000000).
answers() { [ "$("$@")" = 0.936752 ]; }

install_it() { cmake --install "$build" --prefix "$prefix"; }

# Nothing is told to the compiler and the linker but what pkg-config says.
through_pkg_config() {
    flags=$(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config $static --cflags --libs posenc) || return 1
    echo "pkg-config: $flags"
    # shellcheck disable=SC2086 # a list of words
    "$compiler" -std=c11 "$source/examples/readme_example.c" $flags -o "$work/by_pkg_config" &&
        answers env LD_LIBRARY_PATH="$libraries" "$work/by_pkg_config"
}

through_find_package() {
    mkdir "$work/project" && cat >"$work/project/CMakeLists.txt" <<EOF || return 1
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(posenc $version REQUIRED)
add_executable(by_cmake $source/examples/readme_example.c)
target_link_libraries(by_cmake PRIVATE posenc::posenc)
add_executable(by_cmake_model model.c)
target_link_libraries(by_cmake_model PRIVATE posenc::posenc-model)
EOF
    cat >"$work/project/model.c" <<EOF
#include <posenc/npy.h>
int main(void) {
    posenc_npy_reader *reader;
    return posenc_npy_open("$work/no such file", &reader, NULL, NULL) != POSENC_IO;
}
EOF
    cmake -S "$work/project" -B "$work/project/build" -G "$generator" \
        -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$work/project/build" &&
        answers "$work/project/build/by_cmake" && "$work/project/build/by_cmake_model"
}

# Every header by itself, and a program that links.
as_cxx() {
    for header in "$prefix"/include/posenc/*.h; do
        echo "#include <posenc/$(basename "$header")>" >"$work/header.cpp"
        g++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only \
            "$work/header.cpp" || return 1
    done
    cat >"$work/program.cpp" <<EOF
#include <posenc/posenc.h>
int main() {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *frequencies;
    spec.head_dim = 64;
    if (posenc_frequencies_create(&spec, 0, &frequencies, nullptr, nullptr))
        return 1;
    posenc_frequencies_destroy(frequencies);
    return 0;
}
EOF
    g++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" "$work/program.cpp" \
        "$library" -lm -o "$work/program" && LD_LIBRARY_PATH=$libraries "$work/program"
}

# libc and libm and nothing else; also no symbol that these do not have.
needs_only_libc() {
    readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$work/needed"
    cat "$work/needed"
    ! grep -vE '^(libc|libm)\.' "$work/needed" || return 1
    ldd -r "$library" >"$work/resolved" 2>&1
    cat "$work/resolved"
    ! grep -E 'undefined symbol|not found' "$work/resolved"
}

# Where it was put, without help from the environment.
runs_the_program() { env -u LD_LIBRARY_PATH "$prefix/bin/posenc" --version; }

check "cmake --install works" install_it
library=$(find "$prefix" -name libposenc.so -o -name libposenc.a)
libraries=$(dirname "$library")
version=$(sed -n 's/^Version: //p' "$libraries/pkgconfig/posenc.pc")
static=
case $library in
*.a) static=--static ;;
esac

check "the installed program runs" runs_the_program
if command -v pkg-config >/dev/null; then
    check "README's example builds through pkg-config and runs" through_pkg_config
else
    skip "pkg-config" "there is no pkg-config"
fi
check "README's example builds through find_package and runs" through_find_package
if command -v g++ >/dev/null; then
    check "the headers compile as C++ and the library links" as_cxx
else
    skip "C++" "there is no g++"
fi
case $library in
*.so) check "libposenc.so needs libc and libm only" needs_only_libc ;;
esac
finish
