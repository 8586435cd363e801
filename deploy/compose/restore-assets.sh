#!/usr/bin/env bash
# Restores assets.gz, a file of backup.sh, into the empty MongoDB of
# docker-compose.yml. Run it as a user who can read the secrets. If it fails, MongoDB
# is empty again, and the key of the public log is in its place; if it is killed, repeat
# it. $COMPOSE is the command of Docker Compose.
set -euo pipefail
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
. deploy/compose/compose.sh
SECRETS=$(secrets_dir)
password=$(cat "$SECRETS/mongo-init/admin-password")

if [ ! -s "$from" ] || ! gzip --test "$from"; then
	echo "$from is not an assets.gz of backup.sh; nothing was changed" >&2
	exit 1
fi

# within runs a script in mongo-1. The password is the first line of the input, because
# other users can see command lines. The script's function "mongo" runs JavaScript: the
# database "restoring" marks a restore under way.
# shellcheck disable=SC2016 # expanded in the container
within() { # SCRIPT, with the rest of its input as the standard input
	{
		printf '%s\n' "$password"
		cat
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
	trap finish EXIT
	trap "exit 1" HUP INT TERM
	'"$1"
}

# Check, then mark. Without the mark, assets in MongoDB are in use and stay.
if ! within '
	mongo "
			if (!mark.begun.findOne() && registry.assets.findOne()) {
				print(\"MongoDB has assets: restore into an empty one\");
				quit(3);
			}
			mark.begun.insertOne({at: new Date()});"' </dev/null; then
	echo "nothing was changed" >&2
	exit 1
fi

# Restored assets may be older than what the public log has signed. Without its key the
# log begins anew, and the next start makes another key. The key stays beside its place
# until all assets are restored.
key=$SECRETS/assetsvc/log.key
if [ -e "$key" ] && [ ! -e "$key.before" ]; then
	mv "$key" "$key.before"
fi

emptied=4 # the status of a restore that failed and left MongoDB empty
status=0
# shellcheck disable=SC2016 # expanded in the container
within '
	failed() {
		trap - EXIT
		mongo "registry.dropDatabase(); mark.dropDatabase();" || { finish; exit 1; }
		finish
		exit '$emptied'
	}
	trap failed EXIT
	printf "uri: \"%s\"\n" "$address" >/tmp/restore.yaml
	mongorestore --quiet --drop --stopOnError --oplogReplay --gzip --archive --nsInclude "registry.*" --config /tmp/restore.yaml
	trap finish EXIT' <"$from" || status=$?
case $status in
0)
	rm -f "$key" "$key.before"
	within 'mongo "mark.dropDatabase();"' </dev/null
	;;
"$emptied")
	if [ -e "$key.before" ]; then
		mv "$key.before" "$key"
	fi
	echo "nothing was restored" >&2
	exit 1
	;;
*)
	echo "the restore was cut off: repeat it; until then the key of the public log is in $key.before" >&2
	exit 1
	;;
esac
