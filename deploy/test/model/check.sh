#!/bin/sh
# Check the model of the feed's protocol: that it keeps its promises whatever
# happens, and that it breaks one with any single thing left out (README.md).
#
#   check.sh          everything
#   check.sh quick    all but the large searches
#   check.sh trace X  the shortest history in which the protocol without X fails
set -eu
model=$(cd "$(dirname "$0")" && pwd)/feed.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

megabytes=3000 # that one search may use
deepest=100000 # steps of one history

# variants lists each variant, the promise that breaks first without that part,
# and the definitions that bound its search.
variants() {
	cat <<-'END'
		NAIVE F1 -DPLAIN
		PAGE_FIRST F1 -DPLAIN
		NO_RAISE F1 -DPLAIN
		NO_VOID F1 -DPLAIN
		OPEN_UNGUARDED F1 -DPLAIN
		WRITE_UNGUARDED F1 -DPLAIN
		CLOSE_UNGUARDED F1 -DPLAIN
		NO_MEMORY clock -DPLAIN
		PROMPT prompt -DPLAIN
		NO_OWN_FENCE outcome -DRUN=1
		INSERT_LATE R1 -DRUN=1
		INSERT_REPLACES R2 -DRUN=1 -DDOCS=1
		VISIBLE R2 -DRUN=1 -DDOCS=1
		SHOW_UNAWAITED R1 -DRUN=1
		NO_SETTLE R2 -DRUN=1
		NO_EMPTY R2 -DRUN=1
		READ_FIRST R1 -DRUN=1
		SETTLE_UNFENCED R1 -DRUN=1
		HIGHER_NO R1 -DRUN=1 -DDOCS=1
		HIGHER_YES R1 -DRUN=1 -DDOCS=1
		FOLLOWERS_FIRST R1 -DRUN=1 -DDOCS=1
		REPLACE erasure -DRUN=1 -DDOCS=1
		ERASE_BEFORE R2 -DRUN=1 -DDOCS=1
	END
}

# build NAME SPIN-FLAGS C-FLAGS: makes the checker $work/NAME/pan.
build() {
	mkdir "$work/$1"
	cd "$work/$1"
	# shellcheck disable=SC2086
	spin -a $2 "$model" >spin.txt 2>&1 && cc -w -DSAFETY -DMEMLIM=$megabytes $3 -o pan pan.c >cc.txt 2>&1 || {
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
		END { printf "%-16s %11d %6d %8.1f %6d  %-9s %-9s %s\n", name, states, depth, seconds, memory,
			result, expected, result == expected ? "" : "  <-- NOT AS EXPECTED" }' "$out"
	[ "$2" = "$3" ] || {
		cat "$out"
		false
	}
}

# holds NAME FLAGS: the whole protocol keeps its promises in every history.
holds() {
	(
		build "$1" "$2" '-O2 -DCOLLAPSE'
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
		batches | chain)
			if sed -n '/^unreached in/,$p' out.txt | grep 'state [0-9]' | grep -vq -e '"-end-"'; then
				result='unreached'
			fi
			;;
		esac
		row "$1" "$result" holds
	)
}

# breaks NAME PROMISE FLAGS: without NAME, that promise is broken first.
breaks() {
	(
		build "$1" "-D$1 $3" '-O0 -DBFS'
		./pan -m$deepest >out.txt 2>&1 || true
		case $(grep 'assertion violated' out.txt) in
		'') result=none ;;
		*'first[b]>horizon'*) result=R2 ;;
		*'first[i]==0'*) result=R1 ;;
		*'erased['*) result=erasure ;;
		*'sum>offset'* | *'seen[i]'*) result=F1 ;;
		*'sum>position'* | *'sum!=position'* | *'sum<=last'*) result=F3 ;;
		*'>=first['*) result=prompt ;;
		*'first['*'open['*) result=clock ;;
		*'said['*'!='*) result=outcome ;;
		*) result=other ;;
		esac
		row "$1" "$result" "$2"
	)
}

if [ "${1:-}" = trace ]; then
	flags=$(variants | sed -n "s/^$2 [^ ]* /-D$2 /p")
	[ -n "$flags" ] || {
		echo "no variant $2" >&2
		exit 1
	}
	build "$2" "$flags" '-O0 -DBFS'
	./pan -m$deepest >out.txt 2>&1 || true
	# shellcheck disable=SC2086
	spin -k feed.pml.trail -T $flags "$model" | sed '/^spin: trail ends/,$d; s/^spin: [^ ]*:\([0-9]*\), Error/feed.pml:\1/'
	exit
fi

printf '%-16s %11s %6s %8s %6s  %-9s %-9s\n' model states depth seconds MB result expected
large=
if [ "${1:-}" != quick ]; then
	holds batches '-DPLAIN -DFORGET' >"$work/batches.txt" 2>&1 &
	large=$!
fi
failed=
holds faults '-DPLAIN -DRUN=1 -DAHEAD=1' || failed=1
holds again '-DRUN=1 -DDOCS=1 -DOPENS=2' || failed=1
if [ -n "$large" ]; then
	holds twice '-DPLAIN -DRUN=1 -DOPENS=2 -DFENCES=2 -DFORGET' || failed=1
	holds documents '-DPLAIN -DRUN=1 -DDOCS=3 -DFORGET -DAT_ONCE' || failed=1
	holds record '-DRUN=1' || failed=1
	holds chain '-DDOCS=1 -DFORGET -DAT_ONCE' || failed=1
fi
variants >"$work/variants.txt"
while read -r name promise flags; do
	breaks "$name" "$promise" "$flags" || failed=1
done <"$work/variants.txt"
if [ -n "$large" ]; then
	wait "$large" || failed=1
	cat "$work/batches.txt"
fi
[ -z "$failed" ] || {
	echo 'the model is not as expected' >&2
	exit 1
}
