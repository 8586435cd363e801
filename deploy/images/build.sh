#!/usr/bin/env bash
# Builds the services' images, asset-registry/NAME:VERSION, from scratch: the
# same commit makes the same programs, wherever and whenever it is built. The
# list of what is in each (CycloneDX) lies in the image and in bin/images.
set -euo pipefail
cd "$(dirname "$0")/../.."

SBOM=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
REVISION=$(git rev-parse HEAD)
VERSION=${VERSION:-$(git describe --tags --always --dirty)}
TARGET=bin/images
MAX=$((40 << 20))

mkdir -p "$TARGET"
cp /etc/ssl/certs/ca-certificates.crt "$TARGET/"
for service in gateway assetsvc authsvc; do
	CGO_ENABLED=0 GOFLAGS= go build -trimpath -ldflags "-s -w -buildid=" -o "$TARGET/$service" "./$service/cmd/$service"
	touch -d @0 "$TARGET/$service"
	go run "$SBOM" bin -json -noserial -output "$TARGET/$service.cdx.json" "$TARGET/$service" 2>/dev/null
	size=$(stat -c %s "$TARGET/$service")
	echo "$service: $((size >> 20)) MiB, sha256 $(sha256sum "$TARGET/$service" | cut -c1-16)"
	if [ "$size" -ge "$MAX" ]; then
		echo "$service has more than $((MAX >> 20)) MiB" >&2
		exit 1
	fi
	if [ "${1:-}" = programs ]; then
		continue
	fi
	docker build --quiet --file deploy/images/Dockerfile --tag "asset-registry/$service:$VERSION" --tag "asset-registry/$service:latest" \
		--build-arg "SERVICE=$service" --build-arg "VERSION=$VERSION" --build-arg "REVISION=$REVISION" "$TARGET"
done
