#!/usr/bin/env bash
# Look for known vulnerabilities and foreign licences: vuln.sh TOOL PROGRAM... -- TEST-TOOL...
#
# The script fails if a program has a vulnerable function of a module, save those that
# vulnerable.txt accepts for a reason, and if no program has an accepted one any more. It names the
# vulnerabilities of Go itself, which a newer Go mends, and counts the vulnerabilities of
# tools that only tests need. The database comes as a Go module, so it is there
# wherever modules are. The registry of npm answers no audit everywhere, so of packages for
# JavaScript the licences are checked, and the dates of their locks are printed.
set -euo pipefail
cd "$(dirname "$0")/../.."
tool=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
# The locks have no licences of these packages, or have their words otherwise; only tests need them. Their own files say
# MIT or Unlicense, and jszip may be taken under MIT; the files of buffers and get-document say nothing.
looked='@mapbox/jsonlint-lines-primitives|component-indexof|fast-shallow-equal|get-document|rc-time-picker|rc-trigger'
looked+='|react-universal-interface|reserved|sort-asc|sort-desc|sort-object|buffers|chainsaw|jszip'

for lock in $(git ls-files '*package-lock.json'); do
	jq -r '.packages | to_entries[] | select(.key != "") | "\(.key) \(.value.license // "none")"' "$lock" >"$work/licences"
	echo "$lock: $(wc -l <"$work/licences") packages, of $(git log -1 --format=%cs -- "$lock")"
	if grep -vE ' \(?((Apache-2.0|MIT|ISC|0?BSD(-[23]-Clause)?|MPL-2.0|OFL-1.1|CC0-1.0|Zlib|BlueOak-1.0.0|Python-2.0|Unlicense)( (OR|AND) )?)+\)?$' "$work/licences" |
		grep -vE "^node_modules/($looked) (none|MIT/X11|\(MIT OR GPL-3.0-or-later\))$"; then
		echo "$lock: these have licences that nobody has looked at" >&2
		failed=1
	fi
done
if ! jq -e '[.packages | to_entries[] | select(.key != "" and (.value.dev | not))] == []' clients/typescript/package-lock.json >/dev/null ||
	! grep -qx 'dependencies = \[\]' clients/python/pyproject.toml; then
	echo "a client for JavaScript or Python needs packages of others: look for their vulnerabilities" >&2
	failed=1
fi

if ! (cd "$work" && go mod download -json golang.org/x/vulndb@latest >database 2>why); then
	deploy/test/missing.sh "known vulnerabilities" database "$(tail -1 "$work/why")"
	exit "$failed"
fi
database=$(jq -r .Dir "$work/database")/data/osv
[ "$(find "$database" -name 'GO-*.json' | wc -l)" -gt 4000 ] || {
	echo "the database has fewer than 4000 entries: $database" >&2
	exit 1
}
GOBIN=$work go install "$tool"

# found prints the findings that a filter of jq selects, each once: its name, module and mended version.
found() { # FILTER ARGUMENT...
	local filter=$1
	shift
	"$work/govulncheck" -db "file://$database" -format json "$@" >"$work/found.json"
	jq -r "select(.finding) | .finding | select($filter) | \"\(.osv) \(.trace[0].module)@\(.trace[0].version) \(.fixed_version)\"" \
		"$work/found.json" | sort -u
}

: >"$work/go"
: >"$work/seen"
sed -n 's/^\(GO-[0-9-]* [^ ]*\) .*/\1/p' deploy/test/vulnerable.txt | sort -u >"$work/accepted"
while [ "$1" != -- ]; do
	echo "$1"
	found '.trace[0].function' -mode binary "$1" >"$work/functions"
	grep ' stdlib@' "$work/functions" >>"$work/go" || true
	sed '/ stdlib@/d; s/@.*//' "$work/functions" | sort -u >"$work/modules"
	cat "$work/modules" >>"$work/seen"
	if comm -23 "$work/modules" "$work/accepted" | grep .; then
		echo "$1 has these vulnerable functions: raise the modules" >&2
		failed=1
	fi
	shift
done
shift
if sort -u "$work/seen" | comm -13 - "$work/accepted" | grep .; then
	echo "no program has these any more: delete them in vulnerable.txt" >&2
	failed=1
fi
if [ -s "$work/go" ]; then
	sort -u "$work/go"
	newest=$(awk '{ print $3 }' "$work/go" | sort -V | tail -1)
	line="$(go env GOVERSION) itself has $(sort -u "$work/go" | wc -l) vulnerabilities, which Go ${newest#v} mends"
	echo "$line" >&2
	[ -z "${NOT_TESTED:-}" ] || echo "programs of a Go without known vulnerabilities: $line" >>"$NOT_TESTED"
fi
for name; do
	program=$(deploy/test/tool.sh "$name")
	found '.trace[0].module != "stdlib"' -mode binary "$program" >"$work/modules"
	echo "$name, which does not ship: $(wc -l <"$work/modules") in its modules"
done
exit "$failed"
