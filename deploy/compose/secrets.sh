#!/bin/sh
# Makes the secrets of docker-compose.yml, in ./secrets or the directory that is
# given; those that are there stay. Others on this machine are kept out by the
# directory: the files themselves are read by users of the containers.
set -eu
cd "$(dirname "$0")/../.."
dir=${1:-secrets}
umask 077
mkdir -p "$dir"
cd "$dir"

random() { od -An -N"$1" -v -tx1 /dev/urandom | tr -d ' \n'; }
make() { # NAME, from what is piped in
	if [ -s "$1" ]; then
		cat >/dev/null
		return
	fi
	cat >"$1.new"
	chmod 0444 "$1.new"
	mv "$1.new" "$1"
}

for name in registry-secret mongo-keyfile mongo-admin-password mongo-registry-password grafana-password; do
	random 32 | make $name
done
for name in tokens limits; do
	echo "requirepass $(random 32)" | make redis-$name.conf
done
password() { cut -d' ' -f2 "redis-$1.conf"; }
echo "store: mongodb://registry:$(cat mongo-registry-password)@mongo-1:27017,mongo-2:27017,mongo-3:27017/registry?replicaSet=registry&authSource=admin" | make assetsvc.yaml
echo "store: redis://:$(password tokens)@redis-tokens:6379/0" | make authsvc.yaml
echo "limits-redis: redis://:$(password limits)@redis-limits:6379/0" | make gateway.yaml
