#!/bin/sh
# Makes a go.mod in the folder DIR that builds devmongo with a changed copy of FerretDB:
#
#   source.sh DIR
#
# FerretDB keeps a collection in one table of SQLite, and reads all of it for each query
# that asks for more than an id. Here it asks SQLite for fewer documents (_ferretdb/where.go),
# by indexes that SQLite can use for them, also for those that come first in an order.
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
change "$sqlite/collection.go" '^\tq += whereClause$' \
	'\tvar order string\n\twhereClause, order, args, params = where(params)\n&'
change "$sqlite/collection.go" '^\tq += prepareOrderByClause(params.Sort)$' '\tq += order'
change "$1/ferretdb/internal/handler/msg_find.go" \
	'^\tif !h.DisablePushdown \&\& params.Filter.Len() == 0 \&\& params.Sort.Len() == 0 \&\& params.Skip == 0 {$' \
	'\tif qp.Filter.Len() == params.Filter.Len() \&\& params.Sort.Len() < 2 \&\& params.Skip == 0 {\n\t\tif qp.Sort == nil {\n\t\t\tqp.Sort = params.Sort\n\t\t}'
change "$1/ferretdb/internal/backends/collection.go" 'params.Sort.Map()\["$natural"\]' 'params.Sort.Values()[0]'
change "$sqlite/metadata/registry.go" '"%s->%s", DefaultColumn, strings.Join(fields, "->")' \
	'"%s->>%s", DefaultColumn, strings.Join(fields, "->>")'

cp go.mod go.sum "$1/"
go mod edit -replace "$module=$1/ferretdb" "$1/go.mod"
