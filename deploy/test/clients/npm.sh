#!/bin/sh
# Install the development dependencies of a Node package once, and print the path of
# their folder: npm.sh PACKAGE. They stay in the user's cache under a checksum of
# package.json and package-lock.json.
set -eu
cd "$1"
key=$(cat package.json package-lock.json | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/asset-registry-tools
modules=$cache/npm-$key
if [ ! -d "$modules" ]; then
	# Tests run at the same time: each installs under a name of its own, and renames it.
	mkdir -p "$modules.$$"
	cp package.json package-lock.json "$modules.$$"
	(cd "$modules.$$" && npm ci --ignore-scripts --no-audit --no-fund >&2)
	if [ -d "$modules" ]; then # another one was faster
		rm -rf "$modules.$$"
	else
		mv "$modules.$$" "$modules"
	fi
fi
echo "$modules/node_modules"
