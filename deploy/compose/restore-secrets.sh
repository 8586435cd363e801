#!/usr/bin/env bash
# Makes the directory of the secrets (SECRETS, by default ./secrets) of a
# secrets.tar of backup.sh, whole or not at all. It replaces no secrets that are
# there. $COMPOSE is how Docker Compose is called.
set -euo pipefail
umask 077
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
COMPOSE=${COMPOSE:-docker compose}
. deploy/compose/secrets-dir.sh
SECRETS=$(secrets_dir)

if [ -n "$(ls -A "$SECRETS" 2>/dev/null)" ]; then
	echo "$SECRETS is not empty; move it away first, if it is not wanted" >&2
	exit 1
fi
unfinished=$SECRETS.unfinished
rm -rf "$unfinished" # of a run that was killed
trap 'rm -rf "$unfinished"' EXIT
mkdir -p "$unfinished"
tar -C "$unfinished" -xpf "$from"
if [ ! -s "$unfinished/shared/registry" ]; then
	echo "$from holds no secrets of a registry" >&2
	exit 1
fi
chmod 0700 "$unfinished"
sync -f "$unfinished"
if [ -d "$SECRETS" ]; then
	rmdir "$SECRETS"
fi
mv -T "$unfinished" "$SECRETS"
