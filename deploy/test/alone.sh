#!/usr/bin/env bash
# Check that a module of the workspace also builds alone: alone.sh MODULE
#
# Its packages must need the same versions of the same modules as in the workspace, where they
# are built and tested. Its go.mod and go.sum must be tidy. Compiling it a second time would say
# no more, and takes minutes with an empty build cache.
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
needs() { # OUTPUT: one line for each module that a package here needs, with its version
	go list -test -deps -f '{{with .Module}}{{.Path}} {{.Version}}{{end}}' ./... >"$work/packages"
	sed '/^asset-registry/d' "$work/packages" | sort -u >"$1" # ours have no versions
}
needs "$work/workspace"
export GOWORK=off
needs "$work/alone"
if ! diff "$work/workspace" "$work/alone"; then
	echo "$1: with go.work (<) and alone (>) its packages need other versions; raise the versions in its go.mod" >&2
	exit 1
fi
go mod tidy -diff
