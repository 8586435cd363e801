#!/usr/bin/env bash
# Runs a command with a Docker engine and Docker Compose 2 at hand: those that
# are there, or an engine of its own for the time of the command (as root, on
# Debian). It fails with 69 where no engine can be had. The command finds
# Compose's program in $COMPOSE.
set -euo pipefail
PATH=$PATH:/usr/sbin
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
engine=
finish() {
	if [ -n "$engine" ]; then
		kill "$engine" && wait "$engine" || true
	fi
	rm -rf "$work"
}
trap finish EXIT

nothing() {
	echo "no Docker engine can run here: $1" >&2
	grep -E 'level=(error|fatal)|failed' "$work/log" 2>/dev/null | tail -3 >&2 || true
	exit 69
}

# works tells whether containers run, and not just the engine.
works() {
	tar -C "$(dirname "$(command -v busybox)")" -c busybox | docker import - asset-registry-probe >/dev/null &&
		docker network create asset-registry-probe >/dev/null &&
		docker run --rm --network asset-registry-probe asset-registry-probe /busybox true
}

if ! docker info >/dev/null 2>&1; then
	deploy/setup.sh dockerd iptables busybox || nothing "it cannot be installed"
	export DOCKER_HOST=unix://$work/docker.sock
	for driver in overlay2 vfs; do
		dockerd --host "$DOCKER_HOST" --data-root "$work/data.$driver" --exec-root "$work/exec" --pidfile "$work/pid" \
			--storage-driver "$driver" >"$work/log" 2>&1 &
		engine=$!
		while kill -0 "$engine" 2>/dev/null && ! docker info >/dev/null 2>&1; do
			sleep 0.2
		done
		if works >/dev/null 2>&1; then
			break
		fi
		kill "$engine" 2>/dev/null && wait "$engine" || true
		engine=
	done
	[ -n "$engine" ] || nothing "it does not start, or containers do not"
fi

COMPOSE=bin/tools/docker-compose
if docker compose version >/dev/null 2>&1; then
	COMPOSE="docker compose"
elif [ ! -x "$COMPOSE" ]; then
	(cd deploy/compose/tool && GOWORK=off go build -o "../../../$COMPOSE" github.com/docker/compose/v2/cmd)
fi
export COMPOSE
"$@"
