#!/bin/sh
# Say that a stage lacks a need of needs.txt: missing.sh WHAT-IS-NOT-TESTED NEED REASON.
# With CI set, as in the landing gate, that is a failure.
set -eu
if [ "${CI:-false}" != false ]; then
	echo "$1: $2 is missing, and CI is set: $3" >&2
	exit 1
fi
line="$1: $2 is missing: $3"
echo "$line" >&2
[ -z "${NOT_TESTED:-}" ] || echo "$line" >>"$NOT_TESTED"
