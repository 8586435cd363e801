package sqlite

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/FerretDB/FerretDB/internal/backends"
	"github.com/FerretDB/FerretDB/internal/backends/sqlite/metadata"
	"github.com/FerretDB/FerretDB/internal/handler/sjson"
	"github.com/FerretDB/FerretDB/internal/types"
	"github.com/FerretDB/FerretDB/internal/util/must"
)

// plainName matches a field that is neither an operator nor a path.
var plainName = regexp.MustCompile(`^\w+$`)

// comparisons are the operators of SQL for MongoDB's operators.
var comparisons = map[string]string{"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

// The function `where` returns SQL clauses for a query, and the query without the parts that must not go to SQLite.
// The clauses never find too few documents. They may find too many, because the handler checks each document again.
// So they sort and count only if they check the whole filter.
func where(query *backends.QueryParams) (clause, order string, args []any, rest *backends.QueryParams) {
	conditions, args, whole := conditionsOf(query.Filter)
	if len(conditions) > 0 {
		clause = " WHERE " + strings.Join(conditions, " AND ")
	}
	q := *query
	switch field := strings.Join(q.Sort.Keys(), " "); {
	case field == "" || field == "$natural":
		order = prepareOrderByClause(q.Sort)
	case whole && q.Limit > 0 && plainName.MatchString(field) && field != "_id":
		order = " ORDER BY " + column(field)
		if must.NotFail(q.Sort.Get(field)) == int64(-1) {
			order += " DESC"
		}
	default:
		whole = false
	}
	if !whole {
		q.Limit = 0
	}
	return clause, order, args, &q
}

// column returns the expression for a field, as in an index.
func column(field string) string { return fmt.Sprintf("%s->>%q", metadata.DefaultColumn, field) }

// conditionsOf returns the conditions of a filter that SQLite can check, and their arguments: ids, other strings,
// booleans, ranges of whole numbers, and lists of ids and of whole numbers. They find no array of booleans or
// numbers. The result `whole` says whether they are the whole filter.
func conditionsOf(filter *types.Document) (conditions []string, args []any, whole bool) {
	add := func(condition string, of ...any) {
		conditions = append(conditions, condition)
		args = append(args, of...)
	}
	whole = true
	for _, field := range filter.Keys() {
		if !plainName.MatchString(field) {
			whole = false
			continue
		}
		value := must.NotFail(filter.Get(field))
		switch value := value.(type) {
		case string, types.ObjectID:
			text := string(must.NotFail(sjson.MarshalSingleValue(value)))
			if field == "_id" {
				add(metadata.IDColumn+" = ?", text)
			} else { // the document has it somewhere
				add("instr("+metadata.DefaultColumn+", ?) > 0", text)
				whole = false
			}
		case bool:
			add(column(field)+" = ?", value)
		case *types.Document:
			for _, operator := range value.Keys() {
				limit := must.NotFail(value.Get(operator))
				if list, isList := limit.(*types.Array); isList && operator == "$in" {
					if condition, of := oneOf(field, list); condition != "" {
						add(condition, of...)
						continue
					}
				}
				sign := comparisons[operator]
				switch limit.(type) {
				case int32, int64:
				default:
					sign = ""
				}
				if sign == "" {
					whole = false
					continue
				}
				add(column(field)+" "+sign+" ?", limit)
			}
		default:
			whole = false
		}
	}
	return conditions, args, whole
}

// mostListed is the length of the longest list that SQLite gets.
const mostListed = 1000

// oneOf returns the condition that a field is one of a list. It returns "" if SQLite cannot check the list.
func oneOf(field string, list *types.Array) (condition string, args []any) {
	if list.Len() == 0 || list.Len() > mostListed {
		return "", nil
	}
	for i := range list.Len() {
		switch value := must.NotFail(list.Get(i)).(type) {
		case string:
			if field != "_id" {
				return "", nil
			}
			args = append(args, string(must.NotFail(sjson.MarshalSingleValue(value))))
		case int32, int64:
			if field == "_id" {
				return "", nil
			}
			args = append(args, value)
		default:
			return "", nil
		}
	}
	in := " IN (?" + strings.Repeat(", ?", len(args)-1) + ")"
	if field == "_id" {
		return metadata.IDColumn + in, args
	}
	return column(field) + in, args
}
