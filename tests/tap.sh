# For the check scripts, which source it: a folder of their own in $work, and TAP lines.
# SPDX-License-Identifier: MIT
# shellcheck shell=sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
count=0 failed=0

# check WHAT COMMAND...: one TAP line; what the command printed follows if it failed.
check() {
    what=$1
    shift
    count=$((count + 1))
    if "$@" >"$work/log" 2>&1 </dev/null; then
        echo "ok $count - $what"
    else
        echo "not ok $count - $what"
        sed 's/^/# /' "$work/log"
        failed=$((failed + 1))
    fi
}

# skip WHAT WHY
skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# The plan; the status says whether all went well and there was anything.
finish() {
    echo "1..$count"
    [ "$failed" -eq 0 ] && [ "$count" -gt 0 ]
}
