#!/usr/bin/env bash
# Checks the OpenAPI documents with the linters of two other projects. A warning
# fails it, too.
set -euo pipefail
cd "$(dirname "$0")/lint"

npm ci --no-audit --no-fund --loglevel error
status=0
for document in ../../../../*/internal/openapi/*.json; do
	echo "$document"
	found=$(npx redocly lint --format json "$document" 2>/dev/null | jq '.totals.errors + .totals.warnings')
	if [ "$found" != 0 ]; then
		npx redocly lint "$document" || true
		status=1
	fi
	npx spectral lint --fail-severity hint "$document" || status=1
done
exit "$status"
