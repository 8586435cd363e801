#!/bin/sh
# Starts the Redis with the tokens: redis-tokens.sh CONFIG. First it finishes a restore
# that is complete on the disk (restore-tokens.sh): each step may be repeated, and a
# start at any moment has the data of before or all of the restored data.
set -eu
cd /data
if [ -e restoring/complete ]; then
	if [ -e restoring/appendonlydir ]; then
		rm -rf appendonlydir
		mv restoring/appendonlydir appendonlydir
		sync
	fi
	rm -rf restoring dump.rdb
fi
exec redis-server "$@"
