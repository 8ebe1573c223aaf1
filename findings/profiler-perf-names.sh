#!/bin/sh
# Program: Firefox Profiler's command line 0.10.0 (npm, @firefox-devtools/profiler-cli), with Node 24.
# Guess: text of `perf script` has its time in each line's head, and what stands behind the event's name does not move it.
# Seen: of `sched_switch: ... ==> 7:42 [120]` the last number before a colon is taken for the time, so a task whose name is a number makes
# a recording of 20 ms last 22 min 30 s, and the line's head up to there becomes the name of a thread. No word of warning.
. "$(dirname "$0")/prelude"

npm install --silent --prefix . node@24.21.0 @firefox-devtools/profiler-cli@0.10.0 >fetch.log 2>&1 || cannot_tell "npm install fails: $(tail -n 1 fetch.log)"
HOME=$place
export HOME
profiler() { node_modules/node/bin/node node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js "$@"; }
trap 'profiler stop --all >stop.log 2>&1; rm -rf "$place"' EXIT

# Two switches, 20 ms apart, as perf prints them with a frame each. The other task is called $1.
text() {
    cat <<END
worker 100/100 [000]  1356.933306:       sched:sched_switch: worker:100 [120] S ==> $1:42 [120]
	ffffffff81000000 __schedule ([kernel.kallsyms])

$1 42/42 [000]  1356.943306:       sched:sched_switch: $1:42 [120] S ==> worker:100 [120]
	ffffffff81000000 __schedule ([kernel.kallsyms])

worker 100/100 [000]  1356.953306:       sched:sched_switch: worker:100 [120] S ==> swapper/0:0 [120]
	ffffffff81000000 __schedule ([kernel.kallsyms])

END
}

# How long the recording lasts for the program, which waits half a second for its own helper, and may be asked again.
length() {
    text "$1" >"$1.perf"
    for _ in 1 2 3 4 5 6 7 8; do
        profiler load "$1.perf" >load.log 2>&1 && break
        sleep 1
    done
    profiler profile info | sed -n 's/.*| Full: \([^]]*\)\]$/\1/p'
    profiler stop --all >stop.log 2>&1
}

named=$(length helper)
numbered=$(length 7)
echo "a task called helper: $named; a task called 7: $numbered"
case $named in 2[0-9]ms) ;; *) cannot_tell "the recording with a plain name lasts '$named'" ;; esac
case $numbered in 2[0-9]ms) changed "a name that is a number moves no time" ;; *m*s) ;; *) cannot_tell "the other lasts '$numbered'" ;; esac
holds "a task's name is read as a time"
