#!/bin/sh
# Run make targets one after the other, and print the name, time and result of
# each: stages.sh TARGET... A stage that fails does not stop the others. It exits
# with 1 if any failed.
set -u
table=
failed=0
begin=$(date +%s)
for stage; do
	echo "=== $stage"
	from=$(date +%s)
	if make --no-print-directory "$stage"; then
		result=passed
	else
		result=FAILED
		failed=1
	fi
	row=$(printf '%-14s %5d s  %s' "$stage" $(($(date +%s) - from)) "$result")
	echo "=== $row"
	table="$table$row
"
done
printf '\n%s%-14s %5d s\n' "$table" total $(($(date +%s) - begin))
exit "$failed"
