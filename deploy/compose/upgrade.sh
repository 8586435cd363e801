#!/usr/bin/env bash
# Replaces the services of docker-compose.yml by new ones, with the current images and
# settings, without losing a request. It starts the new containers beside the old
# ones, which then finish their requests. If the new ones do not become healthy, it
# removes them and the old ones keep running. $COMPOSE is the command of Docker Compose.
set -euo pipefail
cd "$(dirname "$0")/../.."
COMPOSE=${COMPOSE:-docker compose}

# end stops and removes containers.
end() {
	for container; do
		docker stop --time 25 "$container" >/dev/null
		docker rm "$container" >/dev/null
	done
}

$COMPOSE run --rm --no-deps log-key >/dev/null # the asset services need the key
$COMPOSE run --rm --no-deps snapshots >/dev/null # they own its volume

if $COMPOSE config --services | grep -x witness-policy >/dev/null; then
	$COMPOSE run --rm --no-deps witness-policy >/dev/null # for the keys that the log has now
	$COMPOSE up --detach --no-deps --no-build --force-recreate --wait witness-1 witness-2
fi

# A service understands callers of the previous version, but not of a newer one. So
# callers are replaced last.
for service in authsvc assetsvc gateway; do
	mapfile -t old < <($COMPOSE ps --quiet "$service")
	count=${#old[@]}
	if ! $COMPOSE up --detach --no-deps --no-build --no-recreate --scale "$service=$((2 * count))" --wait "$service"; then
		mapfile -t new < <($COMPOSE ps --all --quiet "$service" | grep -vxF "$(printf '%s\n' "${old[@]}")")
		end "${new[@]}"
		echo "the new $service does not become healthy; the old one keeps running" >&2
		exit 1
	fi
	sleep 3 # until all callers have found the new containers
	end "${old[@]}"
done
