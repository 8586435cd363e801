#!/bin/sh
# Try the MongoDB stores and scenarios of several services on a real replica set, and print a table of how fast it is:
#
#   MONGODB_URI='mongodb://USER:PASSWORD@HOST:PORT,HOST:PORT/?replicaSet=NAME' mongo.sh
#
# With MONGOD instead, the path of a mongod, it starts a replica set of three for itself.
# CHANGES is how many changes the feed check makes, 2,000 by default. The user needs the roles
# readWriteAnyDatabase and dbAdminAnyDatabase. The databases of the run have names of their own
# and are dropped at the end, also if a test fails. Elections are in make test-mongo-chaos.
set -eu
cd "$(dirname "$0")/../.."
if [ -z "${MONGODB_URI:-}" ] && [ -n "${MONGOD:-}" ]; then
	exec go run ./deploy/test/cmd/mongoset deploy/test/mongo.sh
fi
if [ -z "${MONGODB_URI:-}" ]; then
	echo "usage: make test-mongo MONGODB_URI=mongodb://HOST:PORT/?replicaSet=NAME, or MONGOD=PATH" >&2
	exit 2
fi
MONGODB_RUN=run$(od -An -N4 -tx1 /dev/urandom | tr -d ' ')
export MONGODB_URI MONGODB_RUN
trap 'go run ./deploy/test/cmd/mongodrop' EXIT
trap 'exit 1' INT TERM
CGO_ENABLED=1 go test -count=1 -race -timeout 30m ./assetsvc/internal/mongostore ./filesvc/internal/mongostore
go test -count=1 -timeout 40m -run '^(TestARollingRestartLosesNoRequest|TestSpreadOnMongoAndRedis)$' ./deploy/test/e2e
go test -count=1 -v -timeout 30m -run '^TestFigures$' ./assetsvc/internal/mongostore -mongo.assets 1000,100000 -mongo.for 5s
go test -count=1 -v -timeout 90m -run '^TestFeedUnderFaults$' ./deploy/test/feed -services 1,2,4 -changes "${CHANGES:-2000}"
