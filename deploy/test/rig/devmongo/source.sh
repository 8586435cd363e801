#!/bin/sh
# Makes a go.mod in the folder DIR that builds devmongo with a changed copy of FerretDB:
#
#   source.sh DIR
#
# FerretDB keeps a collection in one table of SQLite, and reads all of it for each query
# that asks for more than an id. Here it asks SQLite for fewer documents (_ferretdb/where.go),
# by indexes that SQLite can use for them.
set -eu
cd "$(dirname "$0")"
module=github.com/FerretDB/FerretDB
go mod download "$module"
cp -r "$(go list -m -f '{{.Dir}}' "$module")" "$1/ferretdb"
chmod -R u+w "$1/ferretdb"
sqlite=$1/ferretdb/internal/backends/sqlite
cp _ferretdb/where.go "$sqlite/"

# change replaces the text of one line. It fails if no line has it.
change() { # FILE OLD NEW
	cp "$1" "$1.old"
	sed -i "s/$2/$3/" "$1"
	if cmp -s "$1" "$1.old"; then
		echo "source.sh: $1 has no line with $2" >&2
		exit 1
	fi
}
change "$sqlite/collection.go" '^\tq += whereClause$' '\twhereClause, args = where(params.Filter)\n&'
change "$sqlite/metadata/registry.go" '"%s->%s", DefaultColumn, strings.Join(fields, "->")' \
	'"%s->>%s", DefaultColumn, strings.Join(fields, "->>")'

cp go.mod go.sum "$1/"
go mod edit -replace "$module=$1/ferretdb" "$1/go.mod"
