#!/bin/sh
# Program: rt-app 1.0 (Debian 12), whose parser is json-c.
# Guess: a phase {"run": 4000, "sleep": 2000, "run": 1000} runs 4 ms and 1 ms, as workgen, which comes with it, makes of it; or it is
# refused. The tutorial says that keys need not be unique.
# Seen: the phase runs 1 ms alone. The last value stays, nothing is said of the first, and the exit status is 0: the same file is
# another workload under rt-app than under workgen.
. "$(dirname "$0")/prelude"

fetch rt-app 1.0-1

# What a loop is meant to run, in us, as the log's column c_duration has it.
duration_of() {
    cat >phase.json <<JSON
{"tasks": {"worker": {"loop": 2, "phases": {"only": $1}}},
 "global": {"duration": 5, "default_policy": "SCHED_OTHER", "calibration": 100, "logdir": "./"}}
JSON
    unpacked/usr/bin/rt-app phase.json >said.txt 2>&1 || changed "rt-app ends with $? for $1"
    duration=$(awk '!/^#/ {print $9; exit}' rt-app-worker-0.log)
    echo "$1: $duration us"
}

duration_of '{"run": 4000, "sleep": 2000, "run1": 1000}'
[ "$duration" = 5000 ] || cannot_tell "two runs of different names are not 5000 us"
duration_of '{"run": 4000, "sleep": 2000, "run": 1000}'
[ "$duration" = 1000 ] || changed "the first run counts"
holds "of a repeated key the last value stays"
