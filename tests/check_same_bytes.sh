#!/bin/sh
# The same bytes come out of every compiler, optimisation level, CPU level and machine:
# check_same_bytes.sh SOURCE_DIR
#
# Compiles the library with tests/same_bytes.c in each way and compares what it prints. aarch64 runs under
# qemu where a cross compiler and qemu are installed. Prints TAP. SPDX-License-Identifier: MIT
set -eu

[ $# -eq 1 ] || {
    echo "usage: check_same_bytes.sh SOURCE_DIR" >&2
    exit 2
}
cd "$1"
# shellcheck source=tests/tap.sh
. tests/tap.sh
sources="src/base/*.c src/cpu/*.c src/kernels/*.c src/frequencies/*.c src/angles/*.c src/bias/*.c
    src/absolute/*.c src/rope/*.c tests/same_bytes.c"

# build COMPILER FLAGS...
build() {
    # shellcheck disable=SC2086 # lists of words
    "$@" -std=c11 -ffp-contract=off -Isrc -Iinclude $sources -o "$work/program" -lm >"$work/built" 2>&1
}

# The first output is what the others must equal.
equals_first() {
    "$@" >"$work/now" && [ -s "$work/now" ] || return 1
    [ -f "$work/first" ] || cp "$work/now" "$work/first"
    diff "$work/first" "$work/now" | head -n 6
    cmp -s "$work/first" "$work/now"
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for level in -O0 -O2 -O3; do
        build $compiler $level || cat "$work/built" # and the comparisons fail
        for cpu in scalar avx2 avx512; do
            check "$compiler $level, CPU level $cpu" equals_first env POSENC_CPU=$cpu "$work/program"
        done
        rm -f "$work/program"
    done
    build $compiler -O2 -DPOSENC_NO_INT128 -DPOSENC_NO_VECTORS || :
    check "$compiler, without 128-bit integers and vectors" equals_first "$work/program"
    rm -f "$work/program"
done

cross=aarch64-linux-gnu-gcc
if command -v $cross >/dev/null && command -v qemu-aarch64-static >/dev/null; then
    for level in -O0 -O2 -O3; do
        build $cross -static $level || :
        check "aarch64 $level under qemu" equals_first qemu-aarch64-static "$work/program"
        rm -f "$work/program"
    done
else
    skip aarch64 "needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static"
fi
finish
