#!/usr/bin/env bash
# Backs up the data of docker-compose.yml into a directory: secrets.tar, tokens.rdb,
# assets.gz and files.tar, or only the named parts (secrets, tokens, assets, files). It may run at
# any time, as a user who can read the secrets. It renames a file into place once
# the file is complete, so a failed run keeps the files of the previous one. A run
# of all parts stores its time in Redis, for the alert BackupTooOld. $COMPOSE is the
# command of Docker Compose.
set -euo pipefail
umask 077
if [ $# = 0 ]; then
	echo "usage: $0 DIRECTORY [secrets] [tokens] [assets] [files]" >&2
	exit 2
fi
to=$(realpath -m "$1")
shift
cd "$(dirname "$0")/../.."
. deploy/compose/compose.sh

whole=no
if [ $# = 0 ]; then
	whole=yes
	# The dump of the assets has their token records and the metadata of files. The bytes of these
	# files come after it.
	set -- secrets tokens assets files
fi
for part; do
	case $part in
	secrets | tokens | assets | files) ;;
	*)
		echo "there is no part $part: name secrets, tokens, assets or files" >&2
		exit 2
		;;
	esac
done
SECRETS=$(secrets_dir)

unfinished=$to.unfinished
mkdir -p "$(dirname "$to")"
exec 9<"$(dirname "$to")"
flock --nonblock 9 || {
	echo "another backup into $(dirname "$to") is running" >&2
	exit 1
}
rm -rf "$unfinished" # left by a run that was killed
mkdir "$unfinished"
trap 'rm -rf "$unfinished"' EXIT

# The key of the public log is left out: with restored assets, which may be older, the
# log must begin anew.
secrets() {
	tar -C "$SECRETS" --exclude='./assetsvc/log.key*' -cf "$unfinished/secrets.tar" .
	tar -tf "$unfinished/secrets.tar" ./shared/registry >/dev/null
}

# shellcheck disable=SC2016 # expanded in the container
tokens() {
	$COMPOSE exec -T redis-tokens sh -euc '
		umask 077
		trap "rm -f /data/backup.rdb" EXIT
		REDISCLI_AUTH=$(cut -d" " -f2 /run/secrets/redis.conf)
		export REDISCLI_AUTH
		redis-cli --rdb /data/backup.rdb >&2
		redis-check-rdb /data/backup.rdb >&2
		cat /data/backup.rdb' </dev/null >"$unfinished/tokens.rdb"
	[ "$(head -c 5 "$unfinished/tokens.rdb")" = REDIS ]
}

# --oplog makes a dump of one moment, which the order of the feed needs. The password
# is not on a command line, because other users can see those.
assets() {
	local password
	password=$(cat "$SECRETS/mongo-init/admin-password")
	printf 'uri: "mongodb://admin:%s@mongo-1,mongo-2,mongo-3/?replicaSet=registry&authSource=admin&readPreference=secondaryPreferred"\n' "$password" |
		$COMPOSE exec -T mongo-1 sh -euc '
			umask 077
			trap "rm -f /tmp/dump.yaml" EXIT
			cat >/tmp/dump.yaml
			mongodump --quiet --oplog --gzip --archive --config /tmp/dump.yaml' >"$unfinished/assets.gz"
	gzip --test "$unfinished/assets.gz"
}

# The files are in directories of two digits. One that goes during the copy was unused or taken down, so
# it may be missing. Any other error fails. Uploads under way are left out.
# shellcheck disable=SC2016 # expanded in the container
files() {
	$COMPOSE run --rm -T --no-deps --user 65532:65532 --entrypoint sh volumes -euc '
		cd /files
		exec 3>&1
		status=0
		errors=$(tar -cf - ?? removed 2>&1 >&3) || status=$?
		if [ $status != 0 ] && echo "$errors" | grep -vE "No such file or directory|File removed before|[Ee]xit" >&2; then exit 1; fi' \
		</dev/null >"$unfinished/files.tar"
	tar -tf "$unfinished/files.tar" >/dev/null
}

# shellcheck disable=SC2016 # expanded in the container
stamp() {
	$COMPOSE exec -T redis-tokens sh -euc '
		REDISCLI_AUTH=$(cut -d" " -f2 /run/secrets/redis.conf)
		export REDISCLI_AUTH
		[ "$(redis-cli set registry:backup "$(date +%s)")" = OK ]' </dev/null
}

for part; do
	"$part"
done
sync "$unfinished"/* "$unfinished"
if [ -d "$to" ]; then # replace the files of the previous run, each at once
	chmod 700 "$to"
	mv "$unfinished"/* "$to/"
else
	mv -T "$unfinished" "$to"
fi
sync "$to" "$(dirname "$to")"
if [ "$whole" = yes ]; then
	stamp
fi
