#!/bin/sh
# Program: perf sched record and perf sched latency of linux-perf 6.1 (Debian 12), both of one build.
# Guess: `latency` measures each wait of what `record` has recorded, wakeups first of all: its columns are about delays.
# Seen: `record` asks for sched_waking, and no longer for sched_wakeup; `latency` reads sched_wakeup, and no sched_waking. So every
# wait of a task that was woken is missing: two processes that wake each other 500 times each have a handful of waits, with delays
# of preemptions alone. Nothing is said, and the exit status is 0. perf 6.12 counts them in the same file.
. "$(dirname "$0")/prelude"

fetch_perf

"$perf" sched record -o pipe.data -- "$perf" bench sched pipe -l 500 >said.txt 2>&1 ||
    cannot_tell "tracepoints cannot be recorded here: $(tail -n 1 said.txt)"
events=$("$perf" evlist -i pipe.data | grep -c -w sched:sched_wakeup || true)
wakings=$("$perf" script -i pipe.data -F comm,event,trace 2>/dev/null | grep -c 'sched_waking: .*comm=sched-pipe' || true)
"$perf" sched latency -i pipe.data >latency.txt 2>&1 || changed "perf sched latency ends with $?"
waits=$(awk -F'|' '/sched-pipe/ {sum += $3} END {print sum + 0}' latency.txt)
grep -E 'Task|sched-pipe' latency.txt
echo "recorded sched_wakeup: $events; wakings of sched-pipe: $wakings; waits that latency counts: $waits"
[ "$wakings" -ge 500 ] || cannot_tell "too few wakings were recorded"
[ "$events" = 0 ] && [ "$waits" -lt $((wakings / 4)) ] || changed "woken tasks have their waits"
holds "waits of woken tasks are missing"
