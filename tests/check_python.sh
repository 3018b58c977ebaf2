#!/bin/sh
# The Python package, installed as people do: check_python.sh SOURCE_DIR
#
# From the clone, and from an sdist made of it, each into a clean virtual environment; then the tests of
# python/tests in the first. Packages come from the Python index through pip. PyTorch's tests run if pip finds a
# build for CPUs alone where it usually looks; with POSENC_TORCH=1 they must run, and the build may also come from
# PyTorch's own index for CPUs. Nothing else of PyTorch is ever downloaded. Those of transformers run where PyTorch is. With POSENC_LONG=1 the tests run once
# more with the C code under the address sanitizer. Prints TAP. SPDX-License-Identifier: MIT
set -eu

[ $# -eq 1 ] || {
    echo "usage: check_python.sh SOURCE_DIR" >&2
    exit 2
}
source=$(cd "$1" && pwd)
# shellcheck source=tests/tap.sh
. "$source/tests/tap.sh"
cd "$work" # away from the tree, whose folders would be imported
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
unset PYTHONPATH PYTHONHOME
torch_version=2.13.0
transformers_version=5.24.0
env=$work/env

environment() { python3 -m venv "$1" && "$1/bin/python" -m pip install -q --upgrade pip; }

install_clone() { "$env/bin/pip" install "$source"; }

make_sdist() {
    "$env/bin/pip" install -q build &&
        "$env/bin/python" -m build --sdist --outdir "$work/dist" "$source" && ls "$work"/dist/posenc-*.tar.gz
}

install_sdist() {
    environment "$work/env_sdist" && "$work/env_sdist/bin/pip" install "$work"/dist/posenc-*.tar.gz &&
        "$work/env_sdist/bin/posenc" --version &&
        "$work/env_sdist/bin/python" -c 'import posenc; print(posenc.apply_rope(posenc.sinusoidal(4, 8)))'
}

# What is missing is named with the packages that bring it.
names_missing_library() {
    if PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH='' "$env/bin/pip" install --no-deps --force-reinstall "$source"; then
        return 1
    fi >"$work/missing" 2>&1
    cat "$work/missing"
    grep -q 'libjson-c-dev' "$work/missing"
}

# run_tap WHAT SCRIPT ARGUMENTS...: its TAP lines, with numbers that go on from ours.
run_tap() {
    what=$1
    shift
    status=0
    "$env/bin/python" "$@" >"$work/tests" 2>&1 || status=$?
    awk -v count="$count" '
    /^(not )?ok [0-9]+ - / { sub(/ok [0-9]+/, "ok " ++count) }
    /^1\.\.[0-9]+$/ || /^$/ { next }
    { print }
    END { print count > "counted" }' "$work/tests"
    read -r ran <counted
    [ "$ran" -gt "$count" ] || status=1
    count=$ran
    [ $status -eq 0 ] || {
        failed=$((failed + 1))
        check "$what: the tests end with status 0, not $status" false
    }
}

# run_tests WHAT FILES...: pytest's tests.
run_tests() {
    what=$1
    shift
    run_tap "$what" -m pytest -p no:cacheprovider -p no:terminal --tap-lines "$@"
}

# Only builds whose version says "cpu"; those of macOS have no other kind.
install_torch() {
    wanted=torch==$torch_version+cpu
    [ "$(uname -s)" = Linux ] || wanted=torch==$torch_version
    "$env/bin/pip" install "$wanted" && return 0
    [ -n "${POSENC_TORCH-}" ] &&
        "$env/bin/pip" install --extra-index-url https://download.pytorch.org/whl/cpu "$wanted"
}

say_and_fail() {
    cat "$1"
    return 1
}

# A second build of the module, beside the first. The sanitizer's library must be there before Python is.
under_address_sanitizer() {
    flags='-fsanitize=address -fno-omit-frame-pointer'
    CFLAGS=$flags CXXFLAGS=$flags "$env/bin/pip" install --no-deps --force-reinstall \
        -C cmake.build-type=RelWithDebInfo -C cmake.define.POSENC_LTO=OFF -C install.strip=false "$source" &&
        grep -q __asan_report "$env"/lib/python*/site-packages/posenc/_core*.so
}

check "a clean virtual environment" environment "$env"
check "pip install of the clone" install_clone
check "an sdist" make_sdist
check "pip install of the sdist, in an environment of its own" install_sdist
check "a missing json-c is named with its packages" names_missing_library
check "pytest, hypothesis, ml_dtypes" "$env/bin/pip" install pytest hypothesis ml_dtypes
tests=$source/python/tests
run_tests NumPy "$tests" --ignore "$tests/test_torch.py" --ignore "$tests/transformers"
if install_torch >"$work/torch" 2>&1; then
    run_tests PyTorch "$tests/test_torch.py"
    check "transformers can be installed" "$env/bin/pip" install -q "transformers==$transformers_version"
    run_tests transformers "$tests/transformers"
    run_tap "posenc inspect against transformers" "$source/tests/test_model_oracle.py" "$env/bin/posenc"
elif [ -n "${POSENC_TORCH-}" ]; then
    check "PyTorch for CPUs can be installed" say_and_fail "$work/torch"
else
    skip "PyTorch" "no build for CPUs where pip looks; POSENC_TORCH=1 ./dev test adds these tests"
    skip "transformers" "needs PyTorch; POSENC_TORCH=1 ./dev test adds these tests"
fi
if [ -n "${POSENC_LONG-}" ]; then
    check "a build with the address sanitizer" under_address_sanitizer
    ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so.6)"
    export ASAN_OPTIONS LD_PRELOAD
    run_tests "address sanitizer" "$tests" --ignore "$tests/test_torch.py" --ignore "$tests/test_package.py" \
        --ignore "$tests/transformers"
fi
finish
