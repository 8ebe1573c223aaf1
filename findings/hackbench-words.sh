#!/bin/sh
# Program: hackbench of rt-tests 2.4 (Debian 12).
# Guess: `hackbench 1 process 5`, the form of the first hackbench and of many scripts since, runs one group for five loops, or is refused.
# Seen: the words are ignored without a word: 10 groups, 400 tasks, 100 messages each, exit status 0. A benchmark then compares
# machines under a load that nobody asked for.
. "$(dirname "$0")/prelude"

fetch rt-tests 2.4-1
hackbench=unpacked/usr/bin/hackbench

"$hackbench" 1 process 5 >words.txt 2>&1 || changed "hackbench 1 process 5 ends with $?"
"$hackbench" -g 1 -l 5 >options.txt 2>&1 || cannot_tell "hackbench -g 1 -l 5 ends with $?"
head -n 2 words.txt options.txt
grep -q '1 groups .*40 tasks' options.txt || cannot_tell "the options are not what they were"
grep -q '10 groups .*400 tasks' words.txt && grep -q 'pass 100 messages' words.txt || changed "the words are heard"
holds "words are ignored"
