#!/usr/bin/env bash
# Prints the command of Docker Compose: one that is installed, of a version that the scripts take,
# or else one that is compiled for the tests.
set -euo pipefail
cd "$(dirname "$0")/../../.."
oldest=$(sed -n 's/^OLDEST_COMPOSE=//p' deploy/compose/compose.sh)
for installed in "docker compose" docker-compose; do
	# shellcheck disable=SC2086 # a command and its argument
	found=$($installed version --short 2>/dev/null) || continue
	found=${found#v}
	if [ "$(printf '%s\n' "$oldest" "${found%%[-+]*}" | sort -V | head -1)" = "$oldest" ]; then
		echo "$installed"
		exit
	fi
	echo "$installed is $found, older than $oldest, and is not used" >&2
done
exec deploy/test/tool.sh composectl
