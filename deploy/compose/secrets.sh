#!/bin/sh
# Makes the secrets of docker-compose.yml in the directory that is given, by
# default ./secrets, with a directory for each service: what is there already
# stays. Others on this machine are kept out by the directory; the files
# themselves are read by users of the containers.
set -eu
dir=${1:-$(dirname "$0")/../../secrets}
umask 022
mkdir -p "$dir"
chmod 0700 "$dir"
cd "$dir"

random() { od -An -N32 -v -tx1 /dev/urandom | tr -d ' \n'; }
make() { # FILE, from what is piped in
	if [ -s "$1" ]; then
		cat >/dev/null
		return
	fi
	mkdir -p "${1%/*}"
	cat >"$1.new"
	chmod 0444 "$1.new"
	mv "$1.new" "$1"
	echo "made $1"
}

random | make shared/registry
random | make mongo/keyfile
random | make mongo-init/admin-password
random | make mongo-init/registry-password
random | make grafana/admin-password
for name in tokens limits; do
	echo "requirepass $(random)" | make redis-$name/redis.conf
done
password() { cut -d' ' -f2 "redis-$1/redis.conf"; }
echo "store: mongodb://registry:$(cat mongo-init/registry-password)@mongo-1:27017,mongo-2:27017,mongo-3:27017/registry?replicaSet=registry&authSource=admin" | make assetsvc/settings.yaml
echo "store: redis://:$(password tokens)@redis-tokens:6379/0" | make authsvc/settings.yaml
echo "limits-redis: redis://:$(password limits)@redis-limits:6379/0" | make gateway/settings.yaml
for name in gateway assetsvc authsvc; do
	make $name/registry-secret <shared/registry
done
