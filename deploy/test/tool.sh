#!/usr/bin/env bash
# Build a tool that only tests need, once, and print the path of the program:
#
#   tool.sh collector | composectl | devmongo | kubeapi | oapi-codegen
#
# Each tool is a module of its own. The program stays in the user's cache under
# a checksum of the module's files, the Go release and the build flags, so it is
# compiled again only when one of these changes.
set -euo pipefail
cd "$(dirname "$0")"
package=.
case "$1" in
collector) module=alerts/collector ;;
composectl) module=compose/composectl package=github.com/docker/compose/v2/cmd ;;
devmongo) module=rig/devmongo ;;
kubeapi) module=k8s/kubeapi ;;
oapi-codegen) module=openapi/oapi-codegen package=github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen ;;
*)
	echo "tool.sh: there is no tool $1" >&2
	exit 2
	;;
esac
cd "$module"
export GOWORK=off CGO_ENABLED=0
# The space after the package keeps the keys of programs that are built already.
key=$( (go version && echo "$package " && cat go.mod go.sum && find . -name '*.go' -o -name '*.sh' | sort | xargs -r cat) | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/asset-registry-tools
program=$cache/$1-$key
mkdir -p "$cache"
exec 9>"$program.lock" # tests run at the same time, and one of them builds
flock 9
if [ ! -x "$program" ]; then
	# A build may be killed. So it has another name, and the rename is atomic.
	[ "$package" != . ] || go vet . >&2
	changed=
	if [ -x source.sh ]; then # the module builds with another go.mod
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
		./source.sh "$work" >&2
		changed=-modfile=$work/go.mod
	fi
	# GOGC is LARGE of the Makefile: the compiler takes less time.
	# shellcheck disable=SC2086 # no flag, or one
	GOGC=400 go build $changed -ldflags "-s -w" -o "$program.$$" "$package" >&2
	mv "$program.$$" "$program"
fi
echo "$program"
