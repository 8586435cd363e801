#!/usr/bin/env bash
# Runs make targets in lanes: stages.sh LANE..., where a lane is a list of targets, such as
# "test-crash test-compose". A lane runs its targets one after another. The first lane
# runs alone, then all others run beside each other.
#
# The output of a target is printed whole when the target ends, so lines of two lanes do
# not mix. A target that fails stops no other. The end is a table of all targets, and the
# names of those that failed. The script exits with 1 if any failed. On an interrupt it
# ends all lanes with the processes that they have started.
set -u
set -m # each lane is a process group, which can be ended as a whole
grace=60 # seconds from SIGTERM to SIGKILL; a Docker engine stops its containers first
work=$(mktemp -d)
lanes=() # process groups
touch "$work/table" "$work/failed"

# show prints the output of a stage and its row of the table.
show() { # STAGE RESULT
	local row
	row=$(printf '%-14s %5d s  %s' "$1" $(($(date +%s) - $(<"$work/$1.began"))) "$2")
	{
		flock 9
		printf '=== %s, output:\n' "$1"
		cat "$work/$1.out"
		printf '=== %s\n' "$row"
		printf '%s\n' "$row" >>"$work/table"
		if [ "$2" != passed ]; then
			printf ' %s' "$1" >>"$work/failed"
		fi
	} 9>"$work/lock"
	rm "$work/$1.began"
}

# lane runs stages one after another.
lane() { # STAGE...
	local stage result
	for stage; do
		printf '=== %s begins\n' "$stage"
		date +%s >"$work/$stage.began"
		result=passed
		make --no-print-directory "$stage" </dev/null >"$work/$stage.out" 2>&1 || result=FAILED
		show "$stage" "$result"
	done
}

# summarize prints the table and the stages that failed.
summarize() {
	printf '\n'
	cat "$work/table"
	printf '%-14s %5d s\n' total "$SECONDS"
	if [ -s "$work/failed" ]; then
		printf 'FAILED:%s\n' "$(<"$work/failed")"
		return 1
	fi
}

# alive reports whether a process of a lane lives.
alive() {
	local group
	for group in "${lanes[@]}"; do
		kill -0 -- "-$group" 2>/dev/null && return
	done
	return 1
}

# interrupt ends all lanes, shows the stages that have not ended, and exits.
interrupt() {
	local group end=$((SECONDS + grace)) began
	trap '' HUP INT TERM
	for group in "${lanes[@]}"; do
		kill -TERM -- "-$group" 2>/dev/null
		kill -CONT -- "-$group" 2>/dev/null # some tests freeze processes
	done
	while alive && [ "$SECONDS" -lt "$end" ]; do
		sleep 0.2
	done
	for group in "${lanes[@]}"; do
		kill -KILL -- "-$group" 2>/dev/null
	done
	for began in "$work"/*.began; do
		if [ -e "$began" ]; then
			show "$(basename "$began" .began)" interrupted
		fi
	done
	summarize
	exit 1
}
trap interrupt HUP INT TERM
trap 'rm -rf "$work"' EXIT

first=$1
shift
# shellcheck disable=SC2086 # a lane is a list
lane $first &
lanes+=($!)
wait
for stages; do
	# shellcheck disable=SC2086
	lane $stages &
	lanes+=($!)
done
wait
summarize
