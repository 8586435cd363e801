#!/usr/bin/env bash
# Checks the OpenAPI documents with the linters of two other projects. A warning
# fails it, too.
set -euo pipefail
cd "$(dirname "$0")/lint"

tools=$(../../clients/npm.sh .)/.bin
status=0
for document in ../../../../*/internal/openapi/*.json; do
	echo "$document"
	found=$("$tools/redocly" lint --format json "$document" 2>/dev/null | jq '.totals.errors + .totals.warnings')
	if [ "$found" != 0 ]; then
		"$tools/redocly" lint "$document" || true
		status=1
	fi
	"$tools/spectral" lint --fail-severity hint "$document" || status=1
done
exit "$status"
