#!/usr/bin/env bash
# Install what building and testing need and is missing. On Debian that is done
# with apt; elsewhere it is told what to install. Arguments are stages, whose needs
# are in needs.txt; "all" is all stages, without a Docker engine and benchmarks.
set -euo pipefail
PATH=$PATH:/usr/sbin

# needs prints the commands of stages.
needs() { # STAGE...
	sed 's/[#/].*//' "$(dirname "$0")/needs.txt" | awk -v stages=" every $* " '
		NF && (index(stages, " " $1 " ") || stages ~ / all / && $1 != "engine" && $1 !~ /^bench/) {
			for (i = 2; i <= NF; i++) print $i
		}' | sort -u
}

# absent prints the commands that are missing.
absent() { # COMMAND...
	local command
	for command; do
		[ "$command" = hunspell-uk ] && [ -e /usr/share/hunspell/uk_UA.dic ] && continue # a dictionary
		case $command in python3-*) /usr/bin/python3 -c "import ${command#python3-}" 2>/dev/null && continue ;; esac # a library
		command -v "$command" >/dev/null || echo "$command"
	done
}

# shellcheck disable=SC2046 # names of commands
missing=$(absent $(needs "$@") | tr '\n' ' ')
[ -n "$missing" ] || {
	echo "all that is needed is installed"
	exit
}
packages=(gcc libc6-dev curl jq bsdextrautils redis-server spin)
for command in $missing; do
	case $command in # whose package has another name
	go)
		echo "Go 1.26 or newer is needed: https://go.dev/doc/install" >&2
		exit 1
		;;
	column | redis-server | gcc) ;;
	dockerd) packages+=(docker.io) ;;
	ip) packages+=(iproute2) ;;
	busybox) packages+=(busybox-static) ;;
	node) packages+=(nodejs) ;;
	hatchling) packages+=(python3-hatchling) ;;
	pip3) packages+=(python3-pip) ;;
	promtool) packages+=(prometheus) ;;
	psql) packages+=(postgresql) ;;
	soffice) packages+=(libreoffice-calc-nogui) ;;
	ssconvert) packages+=(gnumeric) ;;
	ssh-agent) packages+=(openssh-client) ;;
	nsenter) packages+=(util-linux) ;;
	systemd-analyze) packages+=(systemd) ;;
	systemd-nspawn) packages+=(systemd-container) ;;
	*) packages+=("$command") ;;
	esac
done
if ! command -v apt-get >/dev/null; then
	echo "these are missing, please install them: $missing" >&2
	exit 1
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/asset-registry-tools # as in tool.sh
mkdir -p "$cache"
exec 9>"$cache/setup.lock" # two stages may get here at the same time
flock 9
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo

# Another apt may run, such as the one of every day. A lock of dpkg has a timeout; the lock of the
# lists has none, so the update is tried again. Packages that are there stay as they are.
for try in {1..60}; do
	$sudo apt-get update -qq && break
	[ "$try" -lt 60 ] || exit 1
	sleep 5
done
$sudo apt-get install -y -qq --no-upgrade -o DPkg::Lock::Timeout=300 "${packages[@]}"
