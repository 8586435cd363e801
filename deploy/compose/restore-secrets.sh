#!/usr/bin/env bash
# Restores secrets.tar, a file of backup.sh, into the directory of the secrets
# (SECRETS, by default ./secrets), completely or not at all. It never replaces
# existing secrets. $COMPOSE is the command of Docker Compose.
set -euo pipefail
umask 077
from=$(realpath "$1")
cd "$(dirname "$0")/../.."
. deploy/compose/compose.sh
SECRETS=$(secrets_dir)

if [ -n "$(ls -A "$SECRETS" 2>/dev/null)" ]; then
	echo "$SECRETS is not empty; move it away if you do not need it" >&2
	exit 1
fi
unfinished=$SECRETS.unfinished
rm -rf "$unfinished" # left by a run that was killed
trap 'rm -rf "$unfinished"' EXIT
mkdir -p "$unfinished"
tar -C "$unfinished" -xpf "$from"
if [ ! -s "$unfinished/shared/registry" ]; then
	echo "$from does not hold the secrets of a registry" >&2
	exit 1
fi
chmod 0700 "$unfinished"
sync -f "$unfinished"
if [ -d "$SECRETS" ]; then
	rmdir "$SECRETS"
fi
mv -T "$unfinished" "$SECRETS"
