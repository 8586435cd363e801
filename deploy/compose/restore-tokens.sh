#!/usr/bin/env bash
# Replaces all tokens and keys in the Redis of docker-compose.yml by the ones in
# tokens.rdb, a file of backup.sh. A damaged file changes nothing. Redis keeps running
# until the new data is on the disk; its next start takes them (redis-tokens.sh). The
# script may be repeated. $COMPOSE is the command of Docker Compose.
set -euo pipefail
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
. deploy/compose/compose.sh

within() { $COMPOSE run --rm -T --no-deps --entrypoint sh redis-tokens -euc "$1"; }

# A Redis with an append-only log does not load an RDB file. So a temporary Redis
# without a log loads the file, and writes the log that the real one starts with.
# shellcheck disable=SC2016 # expanded in the container
within '
	umask 077
	new=/data/restoring
	clear() {
		rm -f "$new/complete"
		rm -rf "$new"
	}
	clear # left by a run that was killed
	trap clear EXIT
	mkdir "$new"
	cat >"$new/dump.rdb"
	redis-check-rdb "$new/dump.rdb" >&2
	cli() { redis-cli -s "$new/socket" "$@"; }
	redis-server --dir "$new" --port 0 --unixsocket "$new/socket" --save "" --appendonly no >&2 &
	until cli ping 2>/dev/null | grep -q PONG; do
		kill -0 $!
		sleep 0.2
	done
	cli config set appendonly yes
	while cli info persistence | grep -qE "aof_rewrite_(in_progress|scheduled):1"; do sleep 0.2; done
	cli info persistence | grep -q aof_last_bgrewrite_status:ok
	cli dbsize
	cli shutdown nosave
	wait
	sync
	touch "$new/complete"
	sync
	trap - EXIT' <"$from"
trap '$COMPOSE up --detach --no-recreate --no-build --wait redis-tokens' EXIT
$COMPOSE stop redis-tokens
