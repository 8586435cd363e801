#!/bin/sh
# Creates the secrets of docker-compose.yml that do not exist yet. The argument is
# their directory, by default ./secrets; each service has a directory in it. The top
# directory keeps other users of the machine out. The files are readable by all,
# because the containers have users of their own.
set -eu
dir=${1:-$(dirname "$0")/../../secrets}
umask 022
mkdir -p "$dir"
chmod 0700 "$dir"
cd "$dir"

random() { od -An -N32 -v -tx1 /dev/urandom | tr -d ' \n'; }
make() { # FILE, with the standard input as its content
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
for name in assetsvc filesvc; do
	echo "store: mongodb://registry:$(cat mongo-init/registry-password)@mongo-1:27017,mongo-2:27017,mongo-3:27017/registry?replicaSet=registry&authSource=admin" | make $name/settings.yaml
done
echo "store: redis://:$(password tokens)@redis-tokens:6379/0" | make authsvc/settings.yaml
echo "limits-redis: redis://:$(password limits)@redis-limits:6379/0" | make gateway/settings.yaml
random | make shared/objects
printf 'export ROOT_ACCESS_KEY_ID=registry\nexport ROOT_SECRET_ACCESS_KEY=%s\n' "$(cat shared/objects)" | make objects/objects.env
printf '[default]\naws_access_key_id = registry\naws_secret_access_key = %s\n' "$(cat shared/objects)" |
	make filesvc/bucket-credentials
for name in gateway assetsvc authsvc filesvc; do
	make $name/registry-secret <shared/registry
done
