#!/usr/bin/env bash
# Build a tool that only tests need, once, and print the path of the program:
#
#   tool.sh collector | composectl | devmongo | kubeapi | litewitness | oapi-codegen | pebble | versitygw
#
# A tool is a module here, or a program of others at a version, with the modules that
# they chose. The program stays in the user's cache under a checksum of the Go release,
# of the package and of the module's files. So it is compiled again only when one of
# these changes.
set -euo pipefail
cd "$(dirname "$0")"
module= package=.
case "$1" in
collector) module=alerts/collector ;;
composectl) package=github.com/docker/compose/v2/cmd@v2.26.1 ;; # the oldest that deploy/compose/compose.sh takes
devmongo) module=rig/devmongo ;;
kubeapi) module=k8s/kubeapi ;;
litewitness) package=filippo.io/torchwood/cmd/litewitness@v0.9.0 ;; # a witness; the newest for Go 1.26
pebble) package=github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1 ;; # an authority for certificates
versitygw) package=github.com/versity/versitygw/cmd/versitygw@v1.8.0 ;; # an object store with the API of S3
oapi-codegen) package=github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 ;;
*)
	echo "tool.sh: there is no tool $1" >&2
	exit 2
	;;
esac
cd "./$module"
export GOWORK=off CGO_ENABLED=0
# The space after the package keeps the keys of programs that are built already.
# shellcheck disable=SC2046 # names without spaces
key=$( (go version && echo "$package " && { [ -z "$module" ] || cat go.mod go.sum $(find . -name '*.go' -o -name '*.sh' | sort); }) | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/asset-registry-tools
program=$cache/$1-$key
mkdir -p "$cache"
exec 9>"$program.lock" # tests run at the same time, and one of them builds
flock 9
if [ ! -x "$program" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	export GOGC=400 # LARGE of the Makefile: the compiler takes less time
	if [ -z "$module" ]; then
		GOBIN=$work go install -ldflags "-s -w" "$package" >&2
		set -- "$1" "$work"/*
	else
		go vet . >&2
		changed=
		if [ -x source.sh ]; then # the module builds with another go.mod
			./source.sh "$work" >&2
			changed=-modfile=$work/go.mod
		fi
		# shellcheck disable=SC2086 # no flag, or one
		go build $changed -ldflags "-s -w" -o "$work/program" . >&2
		set -- "$1" "$work/program"
	fi
	# A copy may be killed. So it has another name, and the rename is atomic.
	cp "$2" "$program.$$"
	mv "$program.$$" "$program"
fi
echo "$program"
