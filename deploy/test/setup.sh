#!/bin/sh
# Install what building and testing need and is missing. On Debian that is done
# with apt; elsewhere it is told what to install. Arguments are commands that
# something needs beyond that.
set -eu
PATH=$PATH:/usr/sbin
packages=
for command; do
	[ "$command" = hunspell-uk ] && [ -e /usr/share/hunspell/uk_UA.dic ] && continue # a dictionary
	command -v "$command" >/dev/null && continue
	case $command in # whose package has another name
	dockerd) packages="$packages docker.io" ;;
	busybox) packages="$packages busybox-static" ;;
	node) packages="$packages nodejs" ;;
	promtool) packages="$packages prometheus" ;;
	*) packages="$packages $command" ;;
	esac
done
missing=
for command in go gcc curl jq column redis-server spin "$@"; do
	[ "$command" = hunspell-uk ] && [ -e /usr/share/hunspell/uk_UA.dic ] && continue
	command -v "$command" >/dev/null || missing="$missing $command"
done
[ -z "$missing" ] && echo "all that is needed is installed" && exit 0
case "$missing" in *" go"*)
	echo "Go 1.26 or newer is needed: https://go.dev/doc/install" >&2
	exit 1 ;;
esac
if ! command -v apt-get >/dev/null; then
	echo "these are missing, please install them:$missing" >&2
	exit 1
fi
exec 9>"${TMPDIR:-/tmp}/asset-registry-setup-$(id -u)" # two stages may get here at the same time
flock 9
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
$sudo apt-get update -qq
$sudo apt-get install -y -qq gcc libc6-dev curl jq bsdextrautils redis-server spin $packages
