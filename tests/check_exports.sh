#!/bin/sh
# Which names the libraries of a build give away: check_exports.sh BUILD_DIR SOURCE_DIR
#
# A shared library exports exactly its list (src/NAME.map), which is exactly what the public headers
# mark POSENC_API, and has a soname. Among the global symbols of the objects (those of a static
# library, or what a shared one was linked from) all begin with posenc_ or penc_. Prints TAP.
# SPDX-License-Identifier: MIT
set -eu

[ $# -eq 2 ] || {
    echo "usage: check_exports.sh BUILD_DIR SOURCE_DIR" >&2
    exit 2
}
build=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
# shellcheck source=tests/tap.sh
. "$source/tests/tap.sh"

# The names in an export list: between "global:" and "local:".
names_of_map() {
    sed -n '/global:/,/local:/s/^ *\([A-Za-z0-9_]*\);$/\1/p' "$source/src/$1.map" | sort
}

# The functions that headers mark POSENC_API: of each such declaration the name before "(".
names_of_headers() {
    cat "$@" | awk '
        /^#/ { next }
        {
            while (match($0, /\/\*([^*]|\*+[^*\/])*\*+\//)) # a comment within the line
                $0 = substr($0, 1, RSTART - 1) " " substr($0, RSTART + RLENGTH)
            if (comment) {
                if (!match($0, /\*\//))
                    next
                $0 = substr($0, RSTART + 2)
                comment = 0
            }
            if (match($0, /\/\*/)) {
                $0 = substr($0, 1, RSTART - 1)
                comment = 1
            }
            text = text " " $0
        }
        END {
            n = split(text, declarations, ";")
            for (i = 1; i <= n; i++) {
                if (!match(declarations[i], /POSENC_API.*/))
                    continue
                declaration = substr(declarations[i], RSTART)
                if (match(declaration, /[A-Za-z0-9_]+ *\(/))
                    print substr(declaration, RSTART, RLENGTH - 1)
            }
        }' | tr -d ' ' | sort
}

# Each of these compares two sorted lists and shows the difference; empty lists are no lists.
same_names() { [ -s "$1" ] && [ -s "$2" ] && diff "$1" "$2"; }

all_begin_with() { # FILE PATTERN
    [ -s "$1" ] && ! grep -Ev "^($2)" "$1"
}

has_soname() { readelf -d "$1" | grep -E 'SONAME.*\[lib[a-z-]+\.so\.[0-9]+(\.[0-9]+)*\]'; }

# The global symbols of a static library, or of the objects of library $1's target.
global_symbols() {
    if [ -f "$build/lib$1.a" ]; then
        set -- "$build/lib$1.a"
    else
        find "$build" -path "*/CMakeFiles/$1.dir/*.o" >"$work/objects"
        # shellcheck disable=SC2046 # none of the names has a space
        set -- $(cat "$work/objects")
        [ $# -gt 0 ] || return 0
    fi
    nm -g --defined-only "$@" | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' | sort -u
}

# The headers that CMakeLists.txt gives to a library.
headers_of() {
    sed -n "/^posenc_library($1 /,/)/p" "$source/CMakeLists.txt" | grep -oE '[a-z0-9_]+\.h' | sort
}

every_header_has_a_library() {
    (cd "$source/include/posenc" && ls -- *.h) | sort >"$work/there"
    { headers_of posenc && headers_of posenc-model; } | sort >"$work/listed"
    same_names "$work/there" "$work/listed"
}

check "every public header belongs to one library" every_header_has_a_library
checked=0
for library in posenc posenc-model; do
    headers=$(headers_of $library | sed "s|^|$source/include/posenc/|")
    # shellcheck disable=SC2086 # a list of paths; none has a space
    names_of_headers $headers >"$work/headers"
    names_of_map $library >"$work/map"
    check "lib$library: its list is what the headers mark POSENC_API" \
        same_names "$work/headers" "$work/map"
    check "lib$library: every listed name begins with posenc_" all_begin_with "$work/map" posenc_

    shared=$build/lib$library.so
    if [ -e "$shared" ]; then
        nm -D --defined-only "$shared" | awk '{ print $NF }' | sed 's/@.*//' | sort >"$work/exports"
        check "lib$library.so: it exports its list and nothing else" \
            same_names "$work/map" "$work/exports"
        check "lib$library.so: it has a soname with a version" has_soname "$shared"
    fi
    global_symbols $library >"$work/globals"
    if [ -s "$work/globals" ]; then
        check "lib$library: every global symbol begins with posenc_ or penc_" \
            all_begin_with "$work/globals" 'posenc_|penc_'
        checked=$((checked + 1))
    fi
done
check "both libraries were built in $build" [ $checked -eq 2 ]
finish
