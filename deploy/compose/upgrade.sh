#!/usr/bin/env bash
# Replaces the services of docker-compose.yml by those of the images and the
# settings of now, so that nobody notices: new ones are started beside the old,
# which then finish what is under way. If the new ones do not become well, they
# are removed, and the old go on. $COMPOSE is how Docker Compose is called.
set -euo pipefail
cd "$(dirname "$0")/../.."
COMPOSE=${COMPOSE:-docker compose}

# end stops containers, and removes them.
end() {
	for container; do
		docker stop --time 25 "$container" >/dev/null
		docker rm "$container" >/dev/null
	done
}

# A service understands callers that are a version older, not newer.
for service in authsvc assetsvc gateway; do
	mapfile -t old < <($COMPOSE ps --quiet "$service")
	count=${#old[@]}
	if ! $COMPOSE up --detach --no-deps --no-build --no-recreate --scale "$service=$((2 * count))" --wait "$service"; then
		mapfile -t new < <($COMPOSE ps --all --quiet "$service" | grep -vxF "$(printf '%s\n' "${old[@]}")")
		end "${new[@]}"
		echo "the new $service does not become well; the old ones go on" >&2
		exit 1
	fi
	sleep 3 # until all callers have found them
	end "${old[@]}"
done
