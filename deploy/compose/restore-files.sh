#!/usr/bin/env bash
# Restores files.tar, a file of backup.sh, into the empty volume "files" of docker-compose.yml, before
# filesvc starts. If it fails, the volume is empty again; if it is killed, repeat it. $COMPOSE is the
# command of Docker Compose.
set -euo pipefail
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
. deploy/compose/compose.sh

# A files.tar has directories and files with names of filesvc. Another archive could leave the volume.
if ! tar -tf "$from" removed >/dev/null || tar -tvf "$from" | grep -qvE '^[d-].* [0-9a-z][0-9A-Za-z/._-]*$' ||
	tar -tf "$from" | grep -qE '(^|/)\.\.?(/|$)'; then
	echo "$from is not a files.tar of backup.sh; nothing was changed" >&2
	exit 1
fi
read -r sum _ < <(sha256sum "$from")
$COMPOSE run --rm -T --no-deps volumes </dev/null
# Files get their place once all of them are there. A restore that was killed goes on from then on.
# shellcheck disable=SC2016 # expanded in the container
$COMPOSE run --rm -T --no-deps --user 65532:65532 --env "SUM=$sum" --entrypoint sh volumes -euc '
	cd /files
	if [ -e restoring/complete ]; then
		if [ "$(cat restoring/complete)" != "$SUM" ]; then
			echo "a restore of another archive was stopped halfway: repeat that one, or empty the volume; nothing was changed" >&2
			exit 1
		fi
	else
		if [ "$(find . -path ./restoring -prune -o -type f -print | head -n 1)" ]; then
			echo "the volume has files: restore into an empty one; nothing was changed" >&2
			exit 1
		fi
		rm -rf restoring
		trap "rm -rf restoring" EXIT
		mkdir restoring
		tar -C restoring -xf -
		sync
		echo "$SUM" >restoring/sum
		sync
		mv restoring/sum restoring/complete
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
