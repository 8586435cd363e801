#!/usr/bin/env bash
# Restores files.tar, a file of backup.sh, into the empty volume "files" of docker-compose.yml, before
# filesvc starts. If it fails, the volume is empty again; if it is killed, repeat it. $COMPOSE is the
# command of Docker Compose.
set -euo pipefail
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
. deploy/compose/compose.sh

if ! tar -tf "$from" removed >/dev/null; then
	echo "$from is not a files.tar of backup.sh; nothing was changed" >&2
	exit 1
fi
$COMPOSE run --rm -T --no-deps volumes </dev/null
# Files get their place once all of them are there. A restore that was killed goes on from then on.
# shellcheck disable=SC2016 # expanded in the container
$COMPOSE run --rm -T --no-deps --user 65532:65532 --entrypoint sh volumes -euc '
	cd /files
	if [ ! -e restoring/complete ]; then
		if [ "$(find . -path ./restoring -prune -o -type f -print | head -n 1)" ]; then
			echo "the volume has files: restore into an empty one; nothing was changed" >&2
			exit 1
		fi
		rm -rf restoring
		trap "rm -rf restoring" EXIT
		mkdir restoring
		tar -C restoring -xf -
		sync
		touch restoring/complete
		sync
		trap - EXIT
	fi
	for part in restoring/*/; do
		[ -d "$part" ] || break # all have their place
		name=${part#restoring/}
		[ ! -d "$name" ] || rmdir "$name" # filesvc has made it, and nothing is in it
		mv "$part" "$name"
	done
	sync
	rm -r restoring' <"$from"
