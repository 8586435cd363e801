#!/usr/bin/env bash
# Prints how many commits have changed the subject of a stage since its last good run (nightly.txt): since.sh STAGE
# A change that is not committed counts as one more.
set -euo pipefail
cd "$(dirname "$0")/../.."
read -r _ commit paths <<<"$(grep -E "^$1 " deploy/test/nightly.txt)"
# shellcheck disable=SC2086 # a list
count=$(git rev-list --count "$commit..HEAD" -- $paths)
# shellcheck disable=SC2086
git diff --quiet HEAD -- $paths || count=$((count + 1))
echo "$count"
