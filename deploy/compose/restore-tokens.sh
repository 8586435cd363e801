#!/usr/bin/env bash
# Gives the Redis of docker-compose.yml the tokens and keys of a tokens.rdb of
# backup.sh, in place of all that it has. A file that is no good changes nothing.
# $COMPOSE is how Docker Compose is called.
set -euo pipefail
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
COMPOSE=${COMPOSE:-docker compose}

within() { $COMPOSE run --rm -T --no-deps --entrypoint sh redis-tokens -euc "$1"; }

within '
	cat >/data/restore.rdb
	redis-check-rdb /data/restore.rdb >&2 || { rm /data/restore.rdb; exit 1; }' <"$from"
$COMPOSE stop redis-tokens
# A Redis with a log of changes reads nothing else, so one without reads the
# file, and writes the log that the one to come begins with.
within '
	for file in /data/*; do
		[ "$file" = /data/restore.rdb ] || rm -rf "$file"
	done
	mv /data/restore.rdb /data/dump.rdb
	cli() { redis-cli -s /data/socket "$@"; }
	redis-server --dir /data --port 0 --unixsocket /data/socket --save "" --appendonly no >&2 &
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
	rm /data/dump.rdb' </dev/null
$COMPOSE up --detach --no-deps --no-build --wait redis-tokens
