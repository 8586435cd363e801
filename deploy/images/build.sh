#!/usr/bin/env bash
# Builds the services' images, asset-registry/NAME:VERSION, from scratch: the
# same commit makes the same programs and, on the same machine, the same layers,
# whenever and wherever it is built. The list of what is in each (CycloneDX)
# lies in the image and in bin/images. With "programs", it stops before Docker
# is needed.
set -euo pipefail
cd "$(dirname "$0")/../.."

SERVICES="gateway assetsvc authsvc"
REVISION=$(git rev-parse HEAD)
VERSION=${VERSION:-$(git describe --tags --always --dirty)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH # BuildKit heeds it
CREATED=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
TARGET=bin/images
MAX=40000000

mkdir -p "$TARGET"
CGO_ENABLED=0 go build -trimpath -buildvcs=true -ldflags "-s -w -buildid=" -o "$TARGET/" \
	$(for service in $SERVICES; do echo "./$service/cmd/$service"; done)
go build -o "$TARGET/sbom" ./deploy/images/sbom
cp /etc/ssl/certs/ca-certificates.crt "$TARGET/"
for service in $SERVICES; do
	"$TARGET/sbom" "$TARGET/$service" >"$TARGET/$service.cdx.json"
	chmod 0755 "$TARGET/$service"
	chmod 0644 "$TARGET/$service.cdx.json" "$TARGET/ca-certificates.crt"
	touch -d "@$SOURCE_DATE_EPOCH" "$TARGET/$service" "$TARGET/$service.cdx.json" "$TARGET/ca-certificates.crt"
	size=$(cat "$TARGET/$service" "$TARGET/$service.cdx.json" "$TARGET/ca-certificates.crt" | wc -c)
	echo "$service $VERSION: $((size / 100000))e5 bytes, program sha256 $(sha256sum "$TARGET/$service" | cut -c1-16)"
	if [ "$size" -ge "$MAX" ]; then
		echo "$service has more than $MAX bytes" >&2
		exit 1
	fi
	if [ "${1:-}" = programs ]; then
		continue
	fi
	# Only what the image holds is sent to Docker.
	tar -C "$TARGET" -c "$service" "$service.cdx.json" ca-certificates.crt -C "$PWD/deploy/images" Dockerfile |
		docker build --quiet --tag "asset-registry/$service:$VERSION" --tag "asset-registry/$service:latest" \
			--build-arg "SERVICE=$service" --build-arg "VERSION=$VERSION" --build-arg "REVISION=$REVISION" --build-arg "CREATED=$CREATED" - >/dev/null
done
