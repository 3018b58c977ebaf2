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
    src/absolute/*.c src/rope/*.c src/cache/*.c tests/same_bytes.c"

# build COMPILER FLAGS...
build() {
    # shellcheck disable=SC2086 # lists of words
    "$@" -std=c11 -ffp-contract=off -Isrc -Iinclude $sources -o "$work/program" -lm >"$work/built" 2>&1
}

# same_bytes WHAT LEVEL COMMAND...: one TAP line. A level that did not run, because the CPU lacks it, is skipped by
# name: its bytes are not shown.
same_bytes() {
    what="$1, CPU level $2" level=$2
    shift 2
    env POSENC_CPU="$level" "$@" >"$work/now" 2>"$work/said" </dev/null || echo failed >>"$work/said"
    case $(tail -n 1 "$work/said") in
    "$level") check "$what" equals_first ;;
    scalar | neon | avx2 | avx512 | avx512bf16) skip "$what" "this CPU has no $level" ;;
    *) check "$what" did_not_run ;;
    esac
}

did_not_run() {
    cat "$work/said"
    return 1
}

# The first output is what the others must equal.
equals_first() {
    [ -s "$work/now" ] || return 1
    [ -f "$work/first" ] || cp "$work/now" "$work/first"
    diff "$work/first" "$work/now" | head -n 6
    cmp -s "$work/first" "$work/now"
}

case $(uname -m) in
aarch64 | arm64) levels="scalar neon" ;;
x86_64 | i?86) levels="scalar avx2 avx512 avx512bf16" ;;
*) levels=scalar ;;
esac
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for optimisation in -O0 -O2 -O3; do
        build $compiler $optimisation || cat "$work/built" # and the comparisons fail
        for cpu in $levels; do
            same_bytes "$compiler $optimisation" "$cpu" "$work/program"
        done
        rm -f "$work/program"
    done
    build $compiler -O2 -DPOSENC_NO_INT128 -DPOSENC_NO_VECTORS || :
    same_bytes "$compiler, without 128-bit integers and vectors" scalar "$work/program"
    rm -f "$work/program"
done

cross=aarch64-linux-gnu-gcc
if command -v $cross >/dev/null && command -v qemu-aarch64-static >/dev/null; then
    for optimisation in -O0 -O2 -O3; do
        build $cross -static $optimisation || :
        same_bytes "aarch64 $optimisation under qemu" neon qemu-aarch64-static "$work/program"
        rm -f "$work/program"
    done
else
    skip aarch64 "needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static"
fi
finish
