#!/usr/bin/env bash
# Puts the assets of an assets.gz of backup.sh into the empty MongoDB of
# docker-compose.yml; run it as one who may read ./secrets. $COMPOSE is how
# Docker Compose is called.
set -euo pipefail
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
COMPOSE=${COMPOSE:-docker compose}
SECRETS=${SECRETS:-secrets}

gzip --test "$from"
# The password is on no command line, where others could see it: it comes first.
{
	printf 'uri: "mongodb://admin:%s@mongo-1,mongo-2,mongo-3/?replicaSet=registry&authSource=admin"\n' "$(cat "$SECRETS/mongo-init/admin-password")"
	cat "$from"
} | $COMPOSE exec -T mongo-1 sh -euc '
	umask 077
	IFS= read -r settings
	echo "$settings" >/tmp/restore.yaml
	mongorestore --quiet --oplogReplay --gzip --archive --nsInclude "registry.*" --config /tmp/restore.yaml
	rm /tmp/restore.yaml'
