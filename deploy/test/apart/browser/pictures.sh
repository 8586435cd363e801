#!/usr/bin/env bash
# Makes the pictures of docs/pictures from the screenshots that `make test-browser` leaves,
# each of at most 150 KB, and the picture of a terminal: pictures.sh BIN. BIN has registry
# and registryctl; pngquant makes the files small. dashboard.sh makes dashboard.png.
set -euo pipefail
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/../../../.."
while read -r from to; do
	pngquant --quality 30-85 --speed 1 --force --output "docs/pictures/$to.png" "bin/screenshots/$from.png"
	size=$(stat --format %s "docs/pictures/$to.png")
	[ "$size" -le 150000 ] || { echo "$to.png has $size bytes, at most 150000 are wanted" >&2; exit 1; }
done <<'END'
wide-light-site-search-en site-search
wide-light-site-asset-en site-asset
wide-dark-site-found site-found-dark
wide-light-site-statistics site-statistics
phone-light-site-found site-phone
wide-light-key console
END
deploy/test/apart/browser/terminal.sh "$bin" > docs/pictures/log-check.svg
