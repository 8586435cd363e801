package bulk

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"asset-registry/shared/cells"
)

// value returns the value that the cells of a row give to the node n, or nil if they give none. The result `filled`
// reports whether a part of the value comes from a column. The result `mapped` reports whether a column is mapped to a
// part of the value. An element of a list may have columns and constants. If all its columns are empty in this row,
// the list does not get the element.
func (m Mapping) value(n *node, cells []string) (v any, filled, mapped bool) {
	if n.leaf != nil {
		if n.leaf.column < 0 {
			return m.scalar(n.name, n.leaf.constant), false, false
		}
		text := m.text(n.name, cells[n.leaf.column])
		if text == "" {
			return nil, false, true
		}
		return m.scalar(n.name, text), true, true
	}
	object, elements := map[string]any{}, []any{}
	for _, c := range n.children {
		inner, has, may := m.value(c, cells)
		filled, mapped = filled || has, mapped || may
		switch {
		case inner == nil || n.list && may && !has:
		case n.list:
			elements = append(elements, inner)
		default:
			object[c.name] = inner
		}
	}
	if len(object)+len(elements) == 0 {
		return nil, filled, mapped
	}
	if n.list {
		return elements, filled, mapped
	}
	return object, filled, mapped
}

// decimals are the fields whose values may have a decimal comma.
var decimals = []string{"quantity", "latitude", "longitude", "elevation"}

// text returns the text of a cell in the form that the API needs for the field. The cell may come from an export.
func (m Mapping) text(field, cell string) string {
	text := strings.TrimSpace(cells.Plain(cell))
	switch {
	case m.Decimal == "," && slices.Contains(decimals, field):
		return strings.ReplaceAll(strings.Map(withoutSpace, text), ",", ".")
	case m.Dates == dayFirst && strings.HasSuffix(field, "Date"):
		if day, err := time.Parse("02.01.2006", text); err == nil {
			return day.Format(time.DateOnly)
		}
	}
	return text
}

func withoutSpace(r rune) rune {
	if unicode.IsSpace(r) {
		return -1
	}
	return r
}

// scalar returns the value of a field: the text itself, or a number if the API accepts only numbers there.
func (m Mapping) scalar(field, text string) any {
	if field == "index" {
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.Number(text)
		}
	}
	return text
}

// quoted returns a text in quotes, cut if it is long, for the text of a fault.
func quoted(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return strconv.Quote(text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
