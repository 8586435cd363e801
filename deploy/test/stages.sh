#!/usr/bin/env bash
# Runs make targets in lanes: stages.sh LANE..., where a lane is a list of targets, such as
# "test-crash test-compose". A lane runs its targets one after another. The first lane
# runs alone, then all others run beside each other.
#
# The output of a target is printed whole when the target ends, so lines of two lanes do
# not mix. A target that fails stops no other. The end is a table of all targets, and the
# names of those that failed. The script exits with 1 if any failed. On an interrupt it
# ends all lanes with the processes that they have started.
#
# A target passes only if its lane has written so. Every other target fails: its lane was
# killed, the folder for its result is full, it printed nothing, or one of its tests looked at
# nothing. A test that the machine cannot run adds a line to the file NOT_TESTED; the lines of all
# follow the table. The script runs nothing and exits with 2 if a lane is empty, or if a target
# is named twice or has no recipe.
set -u
set -m # each lane is a process group, which can be ended as a whole
export LC_ALL=C.UTF-8
grace=60 # seconds from SIGTERM to SIGKILL; a Docker engine stops its containers first
nothing='\[no tests to run\]|\[no test files\]|warning: no (fuzz )?tests to |matched no packages|no packages to test'
lanes=() # process groups

refuse() { # MESSAGE
	echo "stages.sh: $1" >&2
	exit 2
}

# stages are all targets, in the order of the lanes.
[ $# -gt 0 ] || refuse 'name the lanes'
stages=()
for lane; do
	read -ra named <<<"$lane"
	[ ${#named[@]} -gt 0 ] || refuse "a lane is empty: $(printf '"%s" ' "$@")"
	stages+=("${named[@]}")
done
twice=$(printf '%s\n' "${stages[@]}" | sort | uniq -d)
[ -z "$twice" ] || refuse "named twice: ${twice//$'\n'/ }"
work=$(mktemp -d) || refuse 'there is no folder for results'
trap 'rm -rf "$work"' EXIT

# The database of make shows a rule as "TARGET: ...", some comments, and the lines of its recipe.
make -pqr -- "${stages[@]}" |
	awk '/^[^#\t ][^=]*:/ { target = $1; sub(/:.*/, "", target) } /^$/ { target = "" } /^\t/ && target { print target }' |
	sort -u >"$work/recipes"
for stage in "${stages[@]}"; do
	grep -qxF -e "$stage" "$work/recipes" || refuse "make has no recipe for $stage"
done

# row prints the row of a stage in the table.
row() { # STAGE SECONDS PROCESSOR RESULT
	printf '%-14s %5d s %6d s of processors  %s\n' "$@"
}

# show prints the output of a stage, and its row.
show() { # STAGE SECONDS PROCESSOR RESULT
	{
		flock 9 &&
			printf '=== %s, output:\n' "$1" &&
			cat "$work/$1.out" &&
			printf '=== %s\n' "$(row "$@")"
	} 9>"$work/lock"
}

# processor prints the processor seconds of a stage: of its processes that have ended and were waited for.
TIMEFORMAT='%0U %0S'
processor() { # STAGE
	tail -n 1 "$work/$1.processor" | awk '{ print int($1 + $2) }' # lines before it are of the shell
}

# judge says whether a stage passed that exited with a status, by its output.
judge() { # STAGE STATUS
	if [ "$2" != 0 ]; then
		echo FAILED
	elif [ ! -s "$work/$1.out" ]; then
		echo 'FAILED: it printed nothing'
	else
		grep -qaE "$nothing" "$work/$1.out"
		case $? in
		0) echo 'FAILED: a test looked at nothing' ;;
		1) echo passed ;;
		*) echo 'FAILED: its output cannot be read' ;;
		esac
	fi
}

# lane runs stages one after another. Any failure fails the lane.
lane() { # STAGE...
	local stage status began seconds processor result bad=0
	for stage; do
		printf '=== %s begins\n' "$stage" || bad=1
		began=$SECONDS
		echo "$began" >"$work/$stage.began" || bad=1
		status=0
		{
			time NOT_TESTED=$work/$stage.missing make --no-print-directory SHELL=bash '.SHELLFLAGS=-eo pipefail -c' "$stage" \
				</dev/null >"$work/$stage.out" 2>&1
		} 2>"$work/$stage.processor" || status=$?
		result=$(judge "$stage" "$status")
		seconds=$((SECONDS - began)) processor=$(processor "$stage")
		show "$stage" "$seconds" "$processor" "$result" || bad=1
		echo "$seconds $processor $result" >"$work/$stage.end" || bad=1
		[ "$result" = passed ] || bad=1
	done
	return "$bad"
}

# summarize prints the table and the stages that failed. A stage that has begun and not
# ended is shown with the result LOST.
summarize() { # LOST
	local stage seconds processor result table= failed= all=0
	for stage in "${stages[@]}"; do
		seconds=0 processor=0 result='did not run'
		if [ -s "$work/$stage.end" ]; then
			read -r seconds processor result <"$work/$stage.end"
		elif [ -e "$work/$stage.began" ]; then
			result=$1
			read -r seconds <"$work/$stage.began"
			seconds=$((SECONDS - seconds))
			show "$stage" "$seconds" 0 "$result" || failed+=' output'
		fi
		[ "$result" = passed ] || failed+=" $stage"
		table+=$(row "$stage" "$seconds" "$processor" "$result")$'\n'
		all=$((all + processor))
	done
	printf '\n%s' "$table" && row total "$SECONDS" "$all" '' || failed+=' output'
	for stage in "${stages[@]}"; do
		[ -s "$work/$stage.missing" ] || continue
		sed "s/^/not tested here: $stage: /" "$work/$stage.missing" || failed+=' output'
		[ -z "${NOT_TESTED:-}" ] || cat "$work/$stage.missing" >>"$NOT_TESTED" || failed+=' output' # of the stage that runs this script
	done
	[ -z "$failed" ] || {
		echo "FAILED:$failed"
		return 1
	}
}

# finish ends the processes of lanes.
finish() { # GROUP...
	local group end=$((SECONDS + grace))
	for group; do
		kill -TERM -- "-$group" 2>/dev/null
		kill -CONT -- "-$group" 2>/dev/null # some tests freeze processes
	done
	for group; do
		while kill -0 -- "-$group" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do
			sleep 0.2
		done
		kill -KILL -- "-$group" 2>/dev/null
	done
}

# interrupt ends all lanes, shows the stages that have not ended, and exits.
interrupt() {
	trap '' HUP INT TERM
	finish "${lanes[@]}"
	summarize interrupted
	exit 1
}
trap interrupt HUP INT TERM

# await waits for all lanes. If one fails, the script does. A lane that was killed may leave
# a stage running.
await() {
	local group status
	for group in "${lanes[@]}"; do
		status=0
		wait "$group" || status=$?
		[ "$status" = 0 ] || failed=1
		[ "$status" -le 128 ] || finish "$group"
	done
	lanes=()
}

failed=0
first=$1
shift
# shellcheck disable=SC2086 # a lane is a list
lane $first &
lanes=($!)
await
for lane; do
	# shellcheck disable=SC2086
	lane $lane &
	lanes+=($!)
done
await
summarize 'lost: its lane was killed' || failed=1
exit "$failed"
