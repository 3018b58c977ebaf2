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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
sources="src/base/*.c src/cpu/*.c src/kernels/*.c src/frequencies/*.c src/angles/*.c src/bias/*.c
    src/absolute/*.c src/rope/*.c tests/same_bytes.c"
count=0 failed=0

# build COMPILER FLAGS...
build() {
    # shellcheck disable=SC2086 # lists of words
    "$@" -std=c11 -ffp-contract=off -Isrc -Iinclude $sources -o "$work/program" -lm >"$work/log" 2>&1
}

# compare WHAT COMMAND...: the first one is what the others must equal.
compare() {
    what=$1
    shift
    count=$((count + 1))
    if "$@" >"$work/now" 2>>"$work/log" && [ -s "$work/now" ] &&
        { [ -f "$work/first" ] || cp "$work/now" "$work/first"; } &&
        cmp -s "$work/first" "$work/now"; then
        echo "ok $count - $what"
    else
        echo "not ok $count - $what"
        diff "$work/first" "$work/now" | head -n 6 | sed 's/^/# /'
        sed 's/^/# /' "$work/log" | head -n 20
        failed=$((failed + 1))
    fi
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for level in -O0 -O2 -O3; do
        build $compiler $level || : # a failed build shows as a failed comparison
        for cpu in scalar avx2 avx512; do
            compare "$compiler $level, CPU level $cpu" env POSENC_CPU=$cpu "$work/program"
        done
        rm -f "$work/program"
    done
    build $compiler -O2 -DPOSENC_NO_INT128 -DPOSENC_NO_VECTORS || :
    compare "$compiler, without 128-bit integers and vectors" "$work/program"
    rm -f "$work/program"
done

cross=aarch64-linux-gnu-gcc
if command -v $cross >/dev/null && command -v qemu-aarch64-static >/dev/null; then
    for level in -O0 -O2 -O3; do
        build $cross -static $level || :
        compare "aarch64 $level under qemu" qemu-aarch64-static "$work/program"
        rm -f "$work/program"
    done
else
    count=$((count + 1))
    echo "ok $count - aarch64 # SKIP needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static"
fi
echo "1..$count"
[ $failed -eq 0 ]
