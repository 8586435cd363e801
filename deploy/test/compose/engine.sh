#!/usr/bin/env bash
# Runs a command with a Docker engine and Docker Compose 2 at hand: those that
# are there, or an engine of its own for the time of the command (as root, on
# Debian). It fails with 69, and says why, where no engine can be had. The
# command finds Compose's program in $COMPOSE.
set -euo pipefail
PATH=$PATH:/usr/sbin
cd "$(dirname "$0")/../../.."

POOL=10.231.0.0/16 # room for 256 networks
work=$(mktemp -d)
engine=
stop() {
	if [ -n "$engine" ]; then
		docker ps --all --quiet | xargs --no-run-if-empty docker rm --force >/dev/null 2>&1 || true
		docker network prune --force >/dev/null 2>&1 || true
		kill "$engine" 2>/dev/null || true
		wait "$engine" || true
		engine=
	fi
}
finish() {
	stop
	rm -rf "$work"
}
trap finish EXIT

nothing() {
	echo "no Docker engine can run here: $1" >&2
	exit 69
}

# works tells whether containers run, and not just the engine. The image holds a
# static program: one that needs libraries would not run in it.
works() {
	CGO_ENABLED=0 go build -o "$work/root/probe" ./deploy/test/compose/probe &&
		tar -C "$work/root" -c probe | docker import - asset-registry-probe &&
		docker network create asset-registry-probe &&
		docker run --rm --network asset-registry-probe asset-registry-probe /probe
}

# sweep removes the bridges of engines that were killed. An engine never does, and
# refuses to make a network when too many addresses of the machine are taken. Only
# bridges with an address of $POOL or of the stack's own networks are removed, and
# only those without a container.
sweep() {
	local bridge
	for bridge in $(ip -oneline -4 address show | awk '$2 ~ /^br-/ && $4 ~ /^10[.]23[01][.]/ {print $2}'); do
		if [ ! "$(ls "/sys/class/net/$bridge/brif")" ]; then
			ip link delete "$bridge"
		fi
	done
}

# start runs an engine with a storage driver until the script ends. If no
# container runs in it, it is stopped, and $work/why says why.
start() {
	local log=$work/log.$1
	dockerd --host "$DOCKER_HOST" --data-root "$work/data.$1" --exec-root "$work/exec" --pidfile "$work/pid" \
		--storage-driver "$1" --default-address-pool "base=$POOL,size=24" >"$log" 2>&1 &
	engine=$!
	while kill -0 "$engine" 2>/dev/null && ! docker info >/dev/null 2>&1; do
		sleep 0.2
	done
	if ! kill -0 "$engine" 2>/dev/null; then
		echo "dockerd --storage-driver $1 ended:" >>"$work/why"
		tail -3 "$log" >>"$work/why"
	elif works >"$work/works" 2>&1; then
		return
	else
		echo "with --storage-driver $1 no container runs:" >>"$work/why"
		tail -3 "$work/works" >>"$work/why"
	fi
	stop
	return 1
}

if ! docker info >/dev/null 2>&1; then
	deploy/test/setup.sh engine || nothing "docker.io and iptables cannot be installed"
	export DOCKER_HOST=unix://$work/docker.sock
	sweep
	start overlay2 || start vfs || nothing "$(cat "$work/why")"
fi

COMPOSE=$(deploy/test/compose/which.sh)
export COMPOSE
"$@"
