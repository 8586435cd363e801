#!/usr/bin/env bash
# Tests docker-compose.yml with our images and stand-ins for other projects' images:
# the scenarios, and all that may fail. Where no Docker engine can run, the
# multi-process form of the same tests does; with CI set that is a failure.
set -euo pipefail
cd "$(dirname "$0")/../../.."

if [ "${1:-}" = within ]; then
	deploy/images/build.sh
	deploy/images/same.sh
	deploy/test/compose/standin.sh
	exec go test -count=1 -timeout 40m -v "${@:2}" ./deploy/test/compose
fi
deploy/test/setup.sh test-compose
status=0
deploy/test/compose/engine.sh deploy/test/compose/test.sh within "$@" || status=$?
if [ "$status" = 69 ]; then
	deploy/test/missing.sh docker-compose.yml docker "the services are tested as processes only"
	exec go test -count=1 -timeout 15m -run '^(TestSpreadOnMongoAndRedis|TestARollingRestartLosesNoRequest)$' ./deploy/test/e2e
fi
exit "$status"
