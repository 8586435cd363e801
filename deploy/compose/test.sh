#!/usr/bin/env bash
# Tests docker-compose.yml with our images and stand-ins for those of others:
# the scenarios, and all that may fail. Where no Docker engine can run, the
# multi-process form of the same tests does.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "${1:-}" = within ]; then
	deploy/images/build.sh
	deploy/images/same.sh
	deploy/compose/standin.sh
	exec go test -count=1 -timeout 20m -v ./deploy/compose
fi
deploy/setup.sh haproxy busybox
status=0
deploy/compose/engine.sh deploy/compose/test.sh within || status=$?
if [ "$status" = 69 ]; then
	echo "the services are tested as processes instead" >&2
	exec go test -count=1 -timeout 15m -run '^(TestSplitOnMongoAndRedis|TestARollingRestartLosesNoRequest)$' ./deploy/e2e
fi
exit "$status"
