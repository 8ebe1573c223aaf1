#!/bin/bash
# The gate of action.yml. Words come by the environment, so that no input is taken for a command.
# In: COMPARE (the words behind 'fairlab compare', quoted as for a shell), RULES (one a line), UNDECIDED (warn or fail), FAIRLAB.
set -u
case "${UNDECIDED:=warn}" in
warn | fail) ;;
*) echo "::error::undecided is '$UNDECIDED'; say warn or fail" && exit 2 ;;
esac
rules=()
while IFS= read -r rule; do
    [[ -z "${rule//[[:space:]]/}" ]] || rules+=(--fail-on "$rule")
done <<<"$RULES"
# xargs reads quotes as a shell does, and expands nothing.
mapfile -d '' -t words < <(xargs printf '%s\0' <<<"$COMPARE")
"${FAIRLAB:-fairlab}" compare "${rules[@]}" --github --junit "${RUNNER_TEMP:-.}/fairlab-gate.xml" "${words[@]}"
status=$?
echo "status=$status" >>"${GITHUB_OUTPUT:-/dev/null}"
[[ $status == 3 && $UNDECIDED == warn ]] && exit 0
exit "$status"
