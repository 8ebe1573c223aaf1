#!/bin/sh
# Program: Apache Otava 0.8.0, which finds change points in series of measurements.
# Guess: `otava analyze` looks at all rows of the CSV file that it is given, or says which it leaves out.
# Seen: rows of more than a year ago are left out without a word. A series over older commits, with a step that nobody could miss,
# gives an empty table and exit status 0, as one in which nothing changes; `--since` with an early date finds the step.
. "$(dirname "$0")/prelude"

python3 -m venv venv >venv.log 2>&1 || cannot_tell "python3 -m venv fails: $(tail -n 1 venv.log)"
venv/bin/pip install -q apache-otava==0.8.0 >pip.log 2>&1 || cannot_tell "pip install fails: $(tail -n 1 pip.log)"

# A hundred days from 1 January 2020 on; the second half takes twice as long.
awk 'BEGIN {print "time,commit,seconds"; for (day = 0; day < 100; day++)
    printf "%d,c%d,%s\n", 1577836800 + 86400 * day, day, (day < 50 ? 10 : 20) + day % 3 / 10}' >series.csv
cat >otava.yaml <<END
tests:
  build:
    type: csv
    file: $place/series.csv
    time_column: time
    attributes: [commit]
    metrics: {seconds: {column: seconds}}
END
analyze() { OTAVA_CONFIG=$place/otava.yaml venv/bin/otava analyze build "$@"; }

analyze >plain.txt 2>&1 || changed "it ends with $?"
analyze --since 2019-01-01 >since.txt 2>&1 || cannot_tell "with --since it ends with $?"
cat plain.txt
tail -n 3 since.txt
grep -q ' c50 ' since.txt || cannot_tell "the step is not found at all"
if grep -Eq ' c(49|50|51) |year|older|since|left out' plain.txt; then changed "rows are looked at, or it says that they are not"; fi
holds "nothing is said of rows of more than a year ago"
