#!/usr/bin/env bash
# Replaces the services of docker-compose.yml by new ones, with the current images and
# settings, without losing a request. It starts the new containers beside the old
# ones, which then finish their requests. If the new ones do not become healthy, it
# removes them and the old ones keep running. The images that ran before get the tag
# "former": "VERSION=former deploy/compose/upgrade.sh" goes back to them. $COMPOSE is the
# command of Docker Compose.
#
# No command has --no-deps: older versions of Compose take a container that was made with
# it for another one, so that the next "docker compose up" would replace it.
set -euo pipefail
cd "$(dirname "$0")/../.."
. deploy/compose/compose.sh

# end stops and removes containers.
end() {
	for container; do
		docker stop --time 25 "$container" >/dev/null
		docker rm "$container" >/dev/null
	done
}

# running prints the running containers of a service.
running() { $COMPOSE ps --status running --quiet "$1"; }

# keep_former tags the image of a container as NAME:former.
keep_former() { # CONTAINER
	local image name
	image=$(docker inspect --format '{{.Image}}' "$1")
	name=$(docker inspect --format '{{.Config.Image}}' "$1")
	name=${name%:*}
	if [ "$(docker image inspect --format '{{.Id}}' "$name:former" 2>/dev/null)" != "$image" ]; then
		docker tag "$image" "$name:former"
	fi
}

# start makes containers of a service beside those that it has.
start() { # SERVICE [OPTION...]
	$COMPOSE up --detach --no-build --no-recreate "${@:2}" --wait "$1"
}

services=$($COMPOSE config --services)
has() { grep -qx "$1" <<<"$services"; }

for maker in secrets log-key volumes; do # of what a new version needs
	$COMPOSE run --rm --no-deps "$maker" >/dev/null
done

# Two versions work beside each other in any mix (docs/versions.md). Callers are replaced
# last, so that what is new for them is there. searchsvc owns its volume, so the new one starts when the old
# one has ended: for some seconds the search and the pages answer 503.
for service in authsvc filesvc assetsvc searchsvc gateway; do
	has "$service" || continue
	mapfile -t old < <(running "$service")
	count=${#old[@]}
	if [ "$count" = 0 ]; then
		echo "$service does not run, and stays as it is; 'docker compose up --detach $service' starts it" >&2
		continue
	fi
	keep_former "${old[0]}"
	if [ "$service" = searchsvc ]; then
		end "${old[@]}"
		start searchsvc
		continue
	fi
	if ! start "$service" --scale "$service=$((2 * count))"; then
		mapfile -t new < <($COMPOSE ps --all --quiet "$service" | grep -vxF "$(printf '%s\n' "${old[@]}")")
		end "${new[@]}"
		echo "the new $service does not become healthy; the old one keeps running" >&2
		exit 1
	fi
	sleep 3 # until all callers have found the new containers
	end "${old[@]}"
done

# These read their files again without a pause. Stores read theirs at their next start. "docker kill" sends no signal
# here: the engine takes each for a stop, and never restarts the container again.
for reload in balancer:USR2 admin:USR2 prometheus:HUP; do
	name=${reload%:*}
	if has "$name" && [ -n "$(running "$name")" ]; then
		$COMPOSE exec -T "$name" sh -c "kill -s ${reload#*:} 1"
	fi
done
if has otelcol && [ -n "$(running otelcol)" ]; then # it has no shell
	$COMPOSE restart otelcol
fi
