#!/bin/sh
# One fuzz target for some time: run_target.sh PROGRAMS KEPT SECONDS TARGET
#
# It begins with the corpus of earlier runs (KEPT/corpus/TARGET) and the seeds, and leaves there what it finds; an input
# that breaks the target is left in KEPT/faults. One line of KEPT/time is added: target, seconds of processor time and
# executions; they add up over all runs. Prints the run and the sums. SPDX-License-Identifier: MIT
set -eu
programs=$1 kept=$2 seconds=$3 target=$4
log=$kept/log/$target.log
mkdir -p "$kept/corpus/$target" "$kept/faults" "$kept/log"

status=0
"$programs/fuzz_$target" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$kept/faults/$target-" "$kept/corpus/$target" "$programs/seeds/$target" >"$log" 2>&1 || status=$?

# The second line is that of the children: "1m2.345s 0m0.678s".
times >"$log.times"
used=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] } printf "%.0f", sum }' "$log.times")
rm "$log.times"
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
printf '%s\t%s\t%s\n' "$target" "$used" "${runs:-0}" >>"$kept/time"

if [ $status -eq 0 ]; then
    word=ok
else
    tail -n 30 "$log"
    word='not ok'
fi
awk -F '\t' -v line="$word - $target: ${runs:-0} runs, ${covered:-0} edges reached, $used s of processor time" -v target="$target" '
$1 == target { seconds += $2; runs += $3; count++ }
END { printf "%s; in all %.2f h and %.0f runs in %d sessions\n", line, seconds / 3600, runs, count }' "$kept/time"
exit $status
