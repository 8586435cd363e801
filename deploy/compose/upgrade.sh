#!/usr/bin/env bash
# Replaces the services of docker-compose.yml by those of the images and the
# settings of now, so that nobody notices: new ones are started beside the old,
# which then finish what is under way. $COMPOSE is how Docker Compose is called.
set -euo pipefail
cd "$(dirname "$0")/../.."
COMPOSE=${COMPOSE:-docker compose}

# A service understands callers that are a version older, not newer.
for service in authsvc assetsvc gateway; do
	old=$($COMPOSE ps --quiet "$service")
	count=$(wc -w <<<"$old")
	$COMPOSE up --detach --no-deps --no-build --no-recreate --scale "$service=$((2 * count))" --wait "$service"
	sleep 3 # until all callers have found them
	for container in $old; do
		docker stop --time 25 "$container" >/dev/null
		docker rm "$container" >/dev/null
	done
done
