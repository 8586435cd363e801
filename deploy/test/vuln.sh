#!/bin/sh
# Look for known vulnerabilities: vuln.sh TOOL MODULE...
# Where the database cannot be reached it says so and is content.
set -eu
tool=$1
shift
if ! curl -sSf -m 10 -o /dev/null https://vuln.go.dev/index/db.json 2>/dev/null; then
	echo "the database of vulnerabilities cannot be reached: not checked"
	exit 0
fi
for module in "$@"; do
	(cd "$module" && go run "$tool" ./...)
done
