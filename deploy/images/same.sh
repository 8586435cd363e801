#!/usr/bin/env bash
# Checks that a second build of the images has the same layers, and that a build in
# another directory gives the same program.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
services="gateway assetsvc authsvc filesvc searchsvc registryctl"

layers() { for service in $services; do docker inspect --format '{{.RootFS.Layers}}' "asset-registry/$service"; done; }
layers >"$work/first"
docker image rm --force $(for service in $services; do docker images --quiet "asset-registry/$service"; done) >/dev/null
deploy/images/build.sh >/dev/null
layers >"$work/second"
diff "$work/first" "$work/second"

mkdir "$work/copy"
git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -C "$work/copy" -x
(cd "$work/copy" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags nomsgpack -ldflags "-s -w -buildid=" -o "$work/elsewhere/" ./gateway/cmd/gateway)
CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags nomsgpack -ldflags "-s -w -buildid=" -o "$work/here/" ./gateway/cmd/gateway
cmp "$work/elsewhere/gateway" "$work/here/gateway"
echo "a second build gives the same images"
