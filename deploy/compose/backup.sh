#!/usr/bin/env bash
# Copies what docker-compose.yml keeps into a new directory: secrets.tar,
# tokens.rdb and assets.gz, or those parts that are named (secrets, tokens,
# assets). It may run at any time; run it as one who may read ./secrets.
# $COMPOSE is how Docker Compose is called.
set -euo pipefail
to=$(mkdir -m 700 "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
COMPOSE=${COMPOSE:-docker compose}
SECRETS=${SECRETS:-secrets}

secrets() { tar -C "$SECRETS" -cf "$to/secrets.tar" .; }

tokens() {
	$COMPOSE exec -T redis-tokens sh -c '
		REDISCLI_AUTH=$(cut -d" " -f2 /run/secrets/redis.conf)
		export REDISCLI_AUTH
		redis-cli --rdb /data/backup.rdb >&2 && cat /data/backup.rdb && rm /data/backup.rdb' >"$to/tokens.rdb"
	head -c 5 "$to/tokens.rdb" | grep -q REDIS
}

# With --oplog, the dump is of one moment: the order of the feed needs that.
assets() {
	# The password is on no command line, where others could see it.
	printf 'uri: "mongodb://admin:%s@mongo-1,mongo-2,mongo-3/?replicaSet=registry&authSource=admin&readPreference=secondaryPreferred"\n' "$(cat "$SECRETS/mongo-init/admin-password")" |
		$COMPOSE exec -T mongo-1 sh -euc '
			umask 077
			cat >/tmp/dump.yaml
			mongodump --quiet --oplog --gzip --archive --config /tmp/dump.yaml
			rm /tmp/dump.yaml' >"$to/assets.gz"
}

# Assets last: they bring the records of their tokens along.
[ $# -gt 0 ] || set secrets tokens assets
for part; do
	$part
done
