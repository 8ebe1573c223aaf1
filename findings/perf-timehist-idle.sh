#!/bin/sh
# Program: perf sched timehist of linux-perf 6.1 (Debian 12).
# Guess: `timehist -s` says of a CPU that was busy all the time that it idled for 0 msec.
# Seen: it says "idle entire time window" of a CPU whose idle task never ran: the CPU that had no moment to spare is called idle
# throughout, beside one that idled for a part of the time and has its share.
. "$(dirname "$0")/prelude"

fetch_perf

# Four tasks that compute, bound to one CPU, while its events are recorded.
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
spinners=
for _ in 1 2 3 4; do
    taskset -c "$cpu" timeout 20 sh -c 'while :; do :; done' &
    spinners="$spinners $!"
done
trap 'kill $spinners 2>/dev/null; rm -rf "$place"' EXIT
sleep 0.5
"$perf" sched record -o busy.data -- sleep 1 >said.txt 2>&1 || cannot_tell "tracepoints cannot be recorded here: $(tail -n 1 said.txt)"
"$perf" script -i busy.data -F cpu,event,trace >script.txt 2>/dev/null
place_of=$(printf '\\[%03d\\]' "$cpu")
switches=$(grep -c "$place_of.*sched_switch" script.txt || true)
idle=$(grep "$place_of.*sched_switch" script.txt | grep -c 'swapper' || true)
"$perf" sched timehist -s -i busy.data >timehist.txt 2>/dev/null || changed "perf sched timehist ends with $?"
said=$(grep -E "CPU +$cpu idle" timehist.txt || true)
echo "CPU $cpu: $switches switches, $idle of them from or to its idle task; timehist:$said"
[ "$switches" -gt 20 ] && [ "$idle" = 0 ] || cannot_tell "the CPU was not busy all the time"
case $said in *'idle entire time window'*) ;; *) changed "it is not called idle" ;; esac
holds "a CPU that never idles is called idle"
