#!/bin/sh
# The one-file build: check_one_file.sh SOURCE_DIR [COMPILER...]
#
# Makes posenc.c and posenc.h, compiles them with each compiler (those of gcc and clang that are
# there) with the project's warnings as errors, looks for fused multiply-adds in the machine code,
# and builds and runs the examples against them. Prints TAP. SPDX-License-Identifier: MIT
set -eu

[ $# -ge 1 ] || {
    echo "usage: check_one_file.sh SOURCE_DIR [COMPILER...]" >&2
    exit 2
}
source=$(cd "$1" && pwd)
shift
if [ $# -eq 0 ]; then
    for compiler in gcc clang; do
        ! command -v $compiler >/dev/null || set -- "$@" $compiler
    done
fi
# shellcheck source=tests/tap.sh
. "$source/tests/tap.sh"

make_it() { python3 "$source/tools/amalgamate.py" "$work/$1"; }

made_twice_the_same() {
    make_it again && cmp "$work/one/posenc.c" "$work/again/posenc.c" &&
        cmp "$work/one/posenc.h" "$work/again/posenc.h"
}

# The warnings of every target, -Werror among them, from where the build has them.
warnings=$(sed -n '/target_compile_options(posenc_flags/,/)$/p' "$source/CMakeLists.txt" |
    grep -oE -- '-W[a-z0-9=-]+' | tr '\n' ' ')

# compile COMPILER FLAGS...: nothing but the two files, to posenc.o.
compile() (
    cd "$work/one"
    rm -f "$work/posenc.o"
    compiler=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    "$compiler" "$@" $warnings -c posenc.c -o "$work/posenc.o"
)

# Nobody has to pass -ffp-contract=off: these flags have the compiler fuse whatever it may. Only the
# vector kernels of the angles fuse, by intention, which store what that does not change, and those
# that add squares of float16, which are exact.
nothing_is_fused() {
    compile "$1" -std=gnu11 -O3 "$2" && objdump -d "$work/posenc.o" >"$work/code" || return 1
    awk -v fused="$3" '
        /^[0-9a-f]+ </ { name = $2 }
        $0 !~ fused || name ~ /^<penc_sincos_avx(2|512)_/ { next }
        name ~ /^<penc_head_avx(2|512|512bf16)_(norm_F16|turn_F16_(HALVES|PAIRS))[>.]/ { next }
        { print name, $0; found = 1 }
        END { exit found }' "$work/code"
}

# example NAME COMPILER: includes <posenc/posenc.h>, which leads to the one file.
example() {
    "$2" -std=c11 -O2 -I"$work" -I"$source/data" "$source/examples/$1.c" "$work/posenc.o" -lm \
        -o "$work/$1" || return 1
    "$work/$1" >"$work/$1.out" || {
        cat "$work/$1.out"
        return 1
    }
}

# What a query and a key from known random numbers must score.
scores_are_right() {
    example positional_encoding "$1" || return 1
    cat "$work/positional_encoding.out"
    for positions in '3 +5' '7 +9' '100 +102' '1024 +1026'; do
        grep -qE "^ +$positions +2 +-6\\.530165\$" "$work/positional_encoding.out" || return 1
    done
    for score in '10000: .* +1.331200' '100000: .* +1.368584' '1000000: .* +1.388781'; do
        grep -q " $score\$" "$work/positional_encoding.out" || return 1
    done
}

check "posenc.c and posenc.h are made" make_it one
check "the same tree gives the same bytes" made_twice_the_same
mkdir "$work/posenc"
echo '#include "../one/posenc.h"' >"$work/posenc/posenc.h"
case $(uname -m) in
x86_64) target=-march=haswell fused='[[:space:]]vfn?m(add|sub)' ;;
aarch64) target=-mcpu=native fused='[[:space:]](fn?m(add|sub)|fml[as])[[:space:]]' ;;
*) target='' ;;
esac
for compiler; do
    check "$compiler compiles posenc.c alone without a warning" compile "$compiler" -std=c11
    if [ -n "$target" ]; then
        check "$compiler -O3 $target fuses nothing that has to be rounded" \
            nothing_is_fused "$compiler" "$target" "$fused"
    fi
    check "$compiler -O2 compiles it without a warning" compile "$compiler" -std=c11 -O2
    check "$compiler: README's example runs" example readme_example "$compiler"
    check "$compiler: the interview challenge's properties hold" \
        example interview_challenge "$compiler"
    check "$compiler: scores are the known ones" scores_are_right "$compiler"
done
finish
