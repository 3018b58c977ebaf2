#!/bin/sh
# The tests of vector kernels at the level neon, under qemu on machines of another kind: check_neon.sh SOURCE_DIR
#
# A cross compiler brings no cmocka for its machine: tests/without_cmocka takes its place. Prints TAP.
# SPDX-License-Identifier: MIT
set -eu

[ $# -eq 1 ] || {
    echo "usage: check_neon.sh SOURCE_DIR" >&2
    exit 2
}
cd "$1"
# shellcheck source=tests/tap.sh
. tests/tap.sh
cross=aarch64-linux-gnu-gcc
sources="src/base/*.c src/cpu/*.c src/kernels/*.c src/frequencies/*.c src/angles/*.c src/rope/*.c src/cache/*.c"

# run_test NAME: ends well only if the program ran all of its tests, and at the level neon.
run_test() {
    # shellcheck disable=SC2086 # a list of words
    $cross -static -std=c11 -O1 -ffp-contract=off -D_GNU_SOURCE -Isrc -Iinclude -Itests -Itests/without_cmocka \
        "tests/test_$1.c" $sources -o "$work/$1" -lm || return 1
    qemu-aarch64-static "$work/$1" neon >"$work/lines" || {
        cat "$work/lines"
        return 1
    }
    cat "$work/lines"
    grep -q '^1\.\.' "$work/lines" && ! grep -q SKIP "$work/lines"
}

for name in fast_rows rotate_kernels head_kernels; do
    if command -v $cross >/dev/null && command -v qemu-aarch64-static >/dev/null; then
        check "$name at the level neon, under qemu" run_test $name
    else
        skip "$name at the level neon" "needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static"
    fi
done
finish
