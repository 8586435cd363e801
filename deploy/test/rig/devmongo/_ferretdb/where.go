package sqlite

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/FerretDB/FerretDB/internal/backends/sqlite/metadata"
	"github.com/FerretDB/FerretDB/internal/handler/sjson"
	"github.com/FerretDB/FerretDB/internal/types"
	"github.com/FerretDB/FerretDB/internal/util/must"
)

// plainName matches a field that is neither an operator nor a path.
var plainName = regexp.MustCompile(`^\w+$`)

// comparisons are the operators of SQL for those of MongoDB.
var comparisons = map[string]string{"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

// where returns the WHERE clause and its arguments for the conditions of a filter that
// SQLite can check: ids, other strings, booleans, and ranges of whole numbers. The handler
// checks each document again with the whole filter, so the clause may find too many, but
// never too few. It finds no array of booleans or numbers.
func where(filter *types.Document) (clause string, args []any) {
	var conditions []string
	add := func(condition string, of ...any) {
		conditions = append(conditions, condition)
		args = append(args, of...)
	}
	for _, field := range filter.Keys() {
		if !plainName.MatchString(field) {
			continue
		}
		value := must.NotFail(filter.Get(field))
		column := fmt.Sprintf("%s->>%q", metadata.DefaultColumn, field) // as in an index
		switch value := value.(type) {
		case string, types.ObjectID:
			text := string(must.NotFail(sjson.MarshalSingleValue(value)))
			if field == "_id" {
				add(metadata.IDColumn+" = ?", text)
			} else { // the document has it somewhere
				add("instr("+metadata.DefaultColumn+", ?) > 0", text)
			}
		case bool:
			add(column+" = ?", value)
		case *types.Document:
			for _, operator := range value.Keys() {
				limit := must.NotFail(value.Get(operator))
				switch limit.(type) {
				case int32, int64:
					if sign, ok := comparisons[operator]; ok {
						add(column+" "+sign+" ?", limit)
					}
				}
			}
		}
	}
	if len(conditions) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(conditions, " AND "), args
}
