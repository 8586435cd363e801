#!/bin/sh
# Check the models: that they keep their promises whatever happens,
# and that they break one with any single thing left out (README.md).
#
#   check.sh          everything
#   check.sh quick    all but the large searches
#   check.sh trace X  the shortest history in which the protocol without X fails
set -eu
models=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

megabytes=3000 # that one search may use
deepest=100000 # steps of one history

# variants lists each variant, the promise that breaks first without that part,
# the model, and the definitions that bound its search.
variants() {
	cat <<-'END'
		NAIVE F1 feed -DPLAIN
		PAGE_FIRST F1 feed -DPLAIN
		NO_RAISE F1 feed -DPLAIN
		NO_VOID F1 feed -DPLAIN
		OPEN_UNGUARDED F1 feed -DPLAIN
		WRITE_UNGUARDED F1 feed -DPLAIN
		CLOSE_UNGUARDED F1 feed -DPLAIN
		NO_MEMORY clock feed -DPLAIN
		PROMPT prompt feed -DPLAIN
		NO_OWN_FENCE outcome feed -DRUN=1
		INSERT_LATE R1 feed -DRUN=1
		INSERT_REPLACES R2 feed -DRUN=1 -DDOCS=1
		VISIBLE R2 feed -DRUN=1 -DDOCS=1
		LOG_UNBOUNDED R1 feed -DRUN=1 -DDOCS=1 -DLOG
		DELETE_SHOWN R2 feed -DRUN=1 -DDOCS=1
		SHOW_UNAWAITED R1 feed -DRUN=1
		NO_SETTLE R2 feed -DRUN=1
		NO_EMPTY R2 feed -DRUN=1
		READ_FIRST R1 feed -DRUN=1
		SETTLE_UNFENCED R1 feed -DRUN=1
		HIGHER_NO R1 feed -DRUN=1 -DDOCS=1
		HIGHER_YES R1 feed -DRUN=1 -DDOCS=1
		FOLLOWERS_FIRST R1 feed -DRUN=1 -DDOCS=1
		REPLACE erasure feed -DRUN=1 -DDOCS=1
		ERASE_BEFORE R2 feed -DRUN=1 -DDOCS=1
		NO_BARRIER F4 failover -DCAUGHT_UP
		MAJORITY F4 failover -DCAUGHT_UP
		JOIN_RUNNING F4 failover -DCAUGHT_UP
		NO_TIME F4 failover -DCAUGHT_UP
		NO_SESSION F1 failover -DCAUGHT_UP
		NO_FORMER whole walk
		ONE_PLACE whole walk
		TRIM_NEWEST whole walk
		MOVED_FIRST whole walk
		DOWNWARDS whole walk
		OLD_CLOCK whole walk
		NO_AWAIT whole walk
		AWAIT_OWN whole walk
	END
}

# build NAME MODEL SPIN-FLAGS C-FLAGS: makes the checker $work/NAME/pan.
build() {
	mkdir "$work/$1"
	cd "$work/$1"
	# shellcheck disable=SC2086
	spin -a $3 "$models/$2.pml" >spin.txt 2>&1 && cc -w -DSAFETY -DMEMLIM=$megabytes $4 -o pan pan.c >cc.txt 2>&1 || {
		cat spin.txt cc.txt >&2
		exit 1
	}
}

# row NAME RESULT EXPECTED prints what the checker of NAME said.
row() {
	out=$work/$1/out.txt
	awk -v name="$1" -v result="$2" -v expected="$3" '
		/States=/ { next }
		/states, stored/ { states = $1 }
		/depth reached/ { for (i = 1; i < NF; i++) if ($i == "reached") depth = $(i + 1) + 0 }
		/elapsed time/ { seconds = $4 }
		/total actual memory/ { memory = $1 }
		END { printf "%-17s %11d %6d %8.1f %6d  %-9s %-9s %s\n", name, states, depth, seconds, memory,
			result, expected, result == expected ? "" : "  <-- NOT AS EXPECTED" }' "$out"
	[ "$2" = "$3" ] || {
		cat "$out"
		false
	}
}

# holds NAME MODEL FLAGS [C-FLAGS]: the whole model keeps its promises in every history.
holds() {
	(
		build "$1" "$2" "$3" "-O2 -DCOLLAPSE ${4:-}"
		./pan -m$deepest -w25 >out.txt 2>&1 || true
		result='no search'
		if grep -q 'errors: [1-9]' out.txt; then
			result=fails
		elif grep -Eq 'not completed|too small|MEMLIM|out of memory' out.txt || ! grep -q 'Full statespace' out.txt; then
			result=truncated
		elif grep -q 'errors: 0' out.txt; then
			result=holds
		fi
		# Where nothing happened, nothing was checked.
		case $1 in
		batches | chain | failover | walk)
			if sed -n '/^unreached in/,$p' out.txt | grep 'state [0-9]' | grep -vq -e '"-end-"'; then
				result='unreached'
			fi
			;;
		esac
		row "$1" "$result" holds
	)
}

# breaks NAME PROMISE MODEL FLAGS: without NAME, that promise is broken first.
breaks() {
	(
		build "$1" "$3" "-D$1 $4" '-O0 -DBFS'
		./pan -m$deepest >out.txt 2>&1 || true
		case $(grep 'assertion violated' out.txt) in
		'') result=none ;;
		*'first[b]>horizon'*) result=R2 ;;
		*'first[i]==0'*) result=R1 ;;
		*'erased['*) result=erasure ;;
		*'sum>offset'* | *'seen[i]'* | *'>=horizon['*) result=F1 ;;
		*'sum>position'* | *'sum!=position'* | *'sum<=last'*) result=F3 ;;
		*'>=least['*) result=F4 ;;
		*'want'* | *'later'*) result=whole ;;
		*'>=first['*) result=prompt ;;
		*'first['*'open['*) result=clock ;;
		*'said['*'!='*) result=outcome ;;
		*) result=other ;;
		esac
		row "$1" "$result" "$2"
	)
}

if [ "${1:-}" = trace ]; then
	variants | grep "^$2 " >"$work/variant.txt" || {
		echo "no variant $2" >&2
		exit 1
	}
	read -r name promise model flags <"$work/variant.txt"
	build "$name" "$model" "-D$name $flags" '-O0 -DBFS'
	./pan -m$deepest >out.txt 2>&1 || true
	# shellcheck disable=SC2086
	spin -k "$model.pml.trail" -T "-D$name" $flags "$models/$model.pml" |
		sed "/^spin: text/,\$d; s/^spin: .*\/\([a-z]*.pml:[0-9]*\), Error.*/\1: this breaks $promise/"
	exit
fi

printf '%-17s %11s %6s %8s %6s  %-9s %-9s\n' model states depth seconds MB result expected
large=
if [ "${1:-}" != quick ]; then
	holds batches feed '-DPLAIN -DFORGET' >"$work/batches.txt" 2>&1 &
	large=$!
fi
failed=
holds faults feed '-DPLAIN -DRUN=1 -DAHEAD=1' || failed=1
holds again feed '-DRUN=1 -DDOCS=1 -DOPENS=2' || failed=1
holds log feed '-DRUN=1 -DDOCS=1 -DLOG' || failed=1
holds failover failover '' || failed=1
holds walk walk '' || failed=1
if [ -n "$large" ]; then
	holds twice feed '-DPLAIN -DRUN=1 -DOPENS=2 -DFENCES=2 -DFORGET' || failed=1
	holds documents feed '-DPLAIN -DRUN=1 -DDOCS=3 -DFORGET -DAT_ONCE' || failed=1
	holds record feed '-DRUN=1' || failed=1
	holds walks walk '-DCHANGES=3' || failed=1
	holds chain feed '-DDOCS=1 -DFORGET -DAT_ONCE' || failed=1
fi
variants >"$work/variants.txt"
while read -r name promise model flags; do
	breaks "$name" "$promise" "$model" "$flags" || failed=1
done <"$work/variants.txt"
if [ -n "$large" ]; then
	wait "$large" || failed=1
	cat "$work/batches.txt"
fi
[ -z "$failed" ] || {
	echo 'the model is not as expected' >&2
	exit 1
}
