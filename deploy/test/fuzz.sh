#!/usr/bin/env bash
# Run every fuzz target of every module for a number of inputs: fuzz.sh COUNT
#
# The bound is a count, because a timed run may end with "context deadline
# exceeded" and no failing input (golang/go#75804). The search for a smaller
# input is bounded, too. An input that fails is left in testdata/fuzz of its
# package.
set -euo pipefail
count=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz-corpus
packages=$(grep -rlE '^func Fuzz' --include='*_test.go' --exclude-dir=node_modules . | xargs -n1 dirname | sort -u)
for package in $packages; do
	# Only our packages tell the fuzzer what they have run. With -fuzz, all dependencies
	# would be compiled anew to do so.
	go test -c -gcflags='asset-registry...=-d=libfuzzer' -o "$work/fuzz.test" "$package"
	for target in $(cat "$package"/*_test.go | sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p'); do
		echo "$package $target"
		(cd "$package" && "$work/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "${count}x" \
			-test.fuzzminimizetime 100x -test.fuzzcachedir "$cache/$package")
	done
done
