#!/bin/sh
# Run every fuzz target of every module for a while: fuzz.sh TIME
set -eu
time=$1
for file in $(grep -rlE '^func Fuzz' --include='*_test.go' .); do
	for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$file"); do
		echo "$(dirname "$file") $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$(dirname "$file")"
	done
done
