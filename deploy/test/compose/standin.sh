#!/usr/bin/env bash
# Makes the images of deploy/test/compose/standin.yml from what Debian has, and from
# deploy/test/rig/devmongo: each holds a program, its libraries, and busybox for the
# health checks.
set -euo pipefail
PATH=$PATH:/usr/sbin
cd "$(dirname "$0")/../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# root NAME PROGRAM... makes a file system of the programs and what they need.
root() {
	local root=$work/$1 file
	shift
	mkdir -p "$root"/{bin,usr/bin,tmp}
	chmod 1777 "$root/tmp"
	for file in cat chmod chown cut env find grep head mkdir mv nc od rm rmdir sh sleep sync tar touch tr true wget; do
		ln -s /usr/bin/busybox "$root/bin/$file"
	done
	for file in "$(command -v busybox)" "$@"; do
		cp "$file" "$root/usr/bin/"
		{ ldd "$file" 2>/dev/null | grep -o "/[^ ]*" || true; } | while read -r library; do
			mkdir -p "$root$(dirname "$library")"
			cp -L "$library" "$root$library"
		done
	done
}

# import NAME OWNER DIRECTORY makes an image; the directory is its data's.
import() {
	mkdir -p "$work/$1$3"
	tar -C "$work/$1" -c --owner="${2%:*}" --group="${2#*:}" --numeric-owner . |
		docker import --change 'ENV PATH=/usr/bin:/bin' - "asset-registry-standin/$1" >/dev/null
}

cp "$(deploy/test/tool.sh devmongo)" "$work/devmongo"
root mongo "$work/devmongo"
import mongo 999:999 /data/db
cp "$(deploy/test/tool.sh versitygw)" "$work/versitygw"
root objects "$work/versitygw"
import objects 65532:65532 /objects
root redis "$(command -v redis-server)" "$(command -v redis-cli)" "$(command -v redis-check-rdb)"
import redis 999:1000 /data
root haproxy "$(command -v haproxy)"
import haproxy 99:99 /var/lib/haproxy
