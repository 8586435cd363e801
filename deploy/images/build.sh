#!/usr/bin/env bash
# Builds the images of the services and of registryctl, asset-registry/NAME:VERSION, from
# scratch. The same commit gives the same programs and layers, on any machine and at any
# time. The files of an image are in bin/images/NAME, with a list of its modules
# (CycloneDX). With the argument "programs", the script stops before it needs Docker.
set -euo pipefail
cd "$(dirname "$0")/../.."

REVISION=$(git rev-parse HEAD)
VERSION=${VERSION:-$(git describe --tags --always --dirty)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
CREATED=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
TARGET=bin/images
MAX=40000000 # bytes of an image
SBOM=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
# nomsgpack is a build tag of gin. It leaves out a codec of 6 MB that no service uses.

mkdir -p "$TARGET"
declare -A package=([registryctl]=./deploy/registry/cmd/registryctl [searchsvc]=./searchsvc/cmd/searchsvc)
for service in gateway assetsvc authsvc filesvc searchsvc registryctl; do
	root=$TARGET/$service
	rm -rf "$root"
	mkdir -p "$root/etc/ssl/certs"
	CGO_ENABLED=0 go build -trimpath -buildvcs=true -tags nomsgpack -ldflags "-s -w -buildid=" -o "$root/service" "${package[$service]:-./$service/cmd/$service}"
	CGO_ENABLED=0 go run -trimpath "$SBOM" bin -json -std -noserial -notimestamp -version "$VERSION" -output "$root/sbom.cdx.json" "$root/service"
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
	size=$(find "$root" -type f -printf '%s\n' | awk '{ all += $1 } END { print all }')
	echo "$service $VERSION: $((size / 100000))e5 bytes, program sha256 $(sha256sum "$root/service" | cut -c1-16)"
	if [ "$size" -ge "$MAX" ]; then
		echo "$service is too large: $size bytes, the limit is $MAX" >&2
		exit 1
	fi
	chmod -R u=rwX,go=rX "$root"
	if [ "${1:-}" = programs ]; then
		continue
	fi
	# Docker adds an archive unchanged, with the times of its files.
	tar -C "$root" -c --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -f "$TARGET/root.tar" .
	tar -C "$TARGET" -c root.tar -C "$PWD/deploy/images" Dockerfile |
		docker build --quiet --tag "asset-registry/$service:$VERSION" --tag "asset-registry/$service:latest" \
			--build-arg "SERVICE=$service" --build-arg "VERSION=$VERSION" --build-arg "REVISION=$REVISION" --build-arg "CREATED=$CREATED" - >/dev/null
done
