#!/usr/bin/env bash
# Runs stages that the landing gate leaves out: nightly.sh STAGE... If all pass, and nothing in the working tree differs
# from its commit, this commit stands in nightly.txt as their last good run.
set -euo pipefail
list=$(dirname "$0")/nightly.txt
"$(dirname "$0")/stages.sh" "$*"
if [ -n "$(git status --porcelain)" ]; then
	echo "the working tree differs from its commit: $list stays as it is"
	exit
fi
commit=$(git rev-parse --short=8 HEAD)
for stage; do
	sed -i -E "s/^($stage +)[0-9a-f]+/\1$commit/" "$list"
done
echo "$list names $commit now: commit it"
