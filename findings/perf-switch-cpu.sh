#!/bin/sh
# Program: perf record and perf script of linux-perf 6.1 and later (Debian 12).
# Guess: a record of a context switch says on which CPU it was, for a switch is a CPU's.
# Seen: with `--switch-events -e dummy COMMAND` no record of a switch has a CPU: perf script prints [-01]. With -C the same kernel
# writes it. Asked for by --sample-cpu, it stands in the records of a command, too. Whoever counts by CPU gets one CPU, -1.
. "$(dirname "$0")/prelude"

fetch_perf

# The CPUs that perf script prints of the switches recorded with these options.
cpus_of() {
    "$perf" record -q --switch-events -e dummy -o switches.data "$@" -- sleep 0.2 >said.txt 2>&1 ||
        cannot_tell "perf record fails here: $(head -n 1 said.txt)"
    cpus=$("$perf" script -i switches.data --show-switch-events 2>/dev/null | sed -n 's/.*\[\([-0-9]*\)\].*PERF_RECORD_SWITCH.*/\1/p' | sort -u | tr '\n' ' ')
    echo "perf record --switch-events -e dummy $*: CPUs $cpus"
    [ -n "$cpus" ] || cannot_tell "nothing was recorded"
}

cpus_of -C 0
[ "$cpus" = '000 ' ] || cannot_tell "not even -C 0 records CPU 0"
cpus_of --sample-cpu
case $cpus in *-*) changed "--sample-cpu does not help" ;; esac
cpus_of
[ "$cpus" = '-01 ' ] || changed "the CPU is there"
holds "switches of a command have no CPU"
