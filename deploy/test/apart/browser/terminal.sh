#!/usr/bin/env bash
# Draws the check of a record's proof in a terminal as an SVG, from the output of the real
# programs: terminal.sh BIN > docs/pictures/log-check.svg. BIN has registry and registryctl.
set -euo pipefail
bin=$(cd "$1" && pwd)
dir=$(mktemp -d)
trap 'kill $registry 2>/dev/null || true; wait; rm -rf "$dir"' EXIT

"$bin/registry" serve --sandbox --addr 127.0.0.1:0 --data "$dir/data" > "$dir/out" 2> "$dir/log" &
registry=$!
: > "$dir/out"
until url=$(grep -om1 'http://127[.0-9:]*' "$dir/out"); do sleep 0.1; done
data=$(grep -om1 "'{\"data\":.*}'" "$dir/out" | tr -d "'")
made=$(curl -fsS -u broker: -H 'Content-Type: application/json' --data "$data" "$url/api/2.5/assets")
id=$(jq -r .data.id <<< "$made")
curl -fsS -X PATCH -u administrator: -H 'Content-Type: application/json' --data '{"data":{"status":"pending"}}' \
	"$url/api/2.5/assets/$id" > /dev/null
until curl -fsS "$url/api/2.5/assets/$id/proof" > /dev/null 2>&1; do sleep 0.2; done

cd "$dir"
key=$("$bin/registryctl" log key show data/log.key)
"$bin/registryctl" --url "$url" prove "$id" > record.tlog-proof
{
	echo '$ registryctl prove $ID > record.tlog-proof'
	echo '$ registryctl verify record.tlog-proof --public-key "$KEY"'
	"$bin/registryctl" verify record.tlog-proof --public-key "$key"
	forged=$(sed -n 's/^extra //p' record.tlog-proof | base64 -d | sed 's/240 m2/840 m2/' | base64 -w0)
	sed -i "s|^extra .*|extra $forged|" record.tlog-proof
	echo '# Somebody writes 840 m2 in place of 240 m2 into the file.'
	echo '$ registryctl verify record.tlog-proof --public-key "$KEY"'
	"$bin/registryctl" verify record.tlog-proof --public-key "$key" 2>&1 || true
} > said

awk '
	{ gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); line[NR] = $0; if (length($0) > wide) wide = length($0) }
	END {
		w = int(wide * 8.45) + 40; h = NR * 21 + 32
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\"", w, h
		print " aria-label=\"A proof is verified in a terminal, then changed and refused\">"
		printf "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#11181f\"/>\n", w, h
		print "<g font-family=\"ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace\" font-size=\"14\" xml:space=\"preserve\">"
		for (i = 1; i <= NR; i++)
			printf "<text x=\"20\" y=\"%d\" fill=\"%s\">%s</text>\n", 16 + i * 21 - 6, line[i] ~ /^[$#]/ ? "#8bc0f5" : "#e9edf2", line[i]
		print "</g>\n</svg>"
	}' said
