#!/usr/bin/env bash
# Restores assets.gz, a file of backup.sh, into the empty MongoDB of
# docker-compose.yml. Run it as a user who can read the secrets. If it fails, MongoDB
# is empty again; if it is killed, repeat it. $COMPOSE is the command of Docker
# Compose.
set -euo pipefail
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
COMPOSE=${COMPOSE:-docker compose}
. deploy/compose/secrets-dir.sh
SECRETS=$(secrets_dir)
password=$(cat "$SECRETS/mongo-init/admin-password")

if [ ! -s "$from" ] || ! gzip --test "$from"; then
	echo "$from is not an assets.gz of backup.sh; nothing was changed" >&2
	exit 1
fi
# Restored assets may be older than what the public log has signed. Without its key the
# log begins anew, and the next start makes another key. A restore that MongoDB refuses
# (status 3) gives the key back.
key=$SECRETS/assetsvc/log.key
refused=3
if [ -e "$key" ]; then
	mv "$key" "$key.before"
fi
settle_key() {
	if [ $? = $refused ] && [ -e "$key.before" ]; then
		mv "$key.before" "$key"
	fi
	rm -f "$key.before"
}
trap settle_key EXIT

# The password is the first line of the input, because other users can see command
# lines. The database "restoring" marks a restore under way: without the mark, assets
# in MongoDB are in use and must not be replaced.
# shellcheck disable=SC2016 # expanded in the container
{
	printf '%s\n' "$password"
	cat "$from"
} | $COMPOSE exec -T mongo-1 sh -euc '
	umask 077
	export HOME=/tmp
	IFS= read -r password
	address="mongodb://admin:$password@mongo-1,mongo-2,mongo-3/?replicaSet=registry&authSource=admin"
	mongo() {
		cat >/tmp/restore.js <<-END
			const set = new Mongo("$address"), registry = set.getDB("registry"), mark = set.getDB("restoring");
			$1
		END
		mongosh --nodb --quiet --file /tmp/restore.js </dev/null >&2
	}
	finish() { rm -f /tmp/restore.yaml /tmp/restore.js; }
	failed() {
		mongo "registry.dropDatabase(); mark.dropDatabase();" || true
		echo "nothing was restored" >&2
		finish
	}
	trap finish EXIT
	mongo "
			if (!mark.begun.findOne() && registry.assets.findOne()) {
				print(\"MongoDB has assets: restore into an empty one\");
				quit(3);
			}
			mark.begun.insertOne({at: new Date()});"
	trap failed EXIT
	trap "exit 1" HUP INT TERM
	printf "uri: \"%s\"\n" "$address" >/tmp/restore.yaml
	mongorestore --quiet --drop --stopOnError --oplogReplay --gzip --archive --nsInclude "registry.*" --config /tmp/restore.yaml
	trap finish EXIT
	mongo "mark.dropDatabase();"'
