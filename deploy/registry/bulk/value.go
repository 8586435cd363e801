package bulk

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/deploy/registry/bulk/sheet"
	"asset-registry/shared/cells"
)

// maker makes a row from its cells.
type maker struct {
	Mapping
	header []string
	cells  []sheet.Cell
	row    Row
	told   map[Fault]bool // warnings about constants

	// taken has the names of the elements that the row gives to a list: an element without a value is left out.
	taken map[*node][]string
}

// find notes a finding in the row, once for all fields of its column. A warning about constants alone is noted once for
// all rows.
func (m *maker) find(level Level, column, says string) {
	f := Finding{Fault{m.row.Number, column, says}, level, nil}
	if level == Warning && strings.HasPrefix(column, constantSource) {
		if f.Row = 0; m.told[f.Fault] {
			return
		}
		m.told[f.Fault] = true
	}
	if !slices.ContainsFunc(m.row.found, func(o Finding) bool { return o.Fault == f.Fault }) {
		m.row.found = append(m.row.found, f)
	}
}

// value returns the value that the cells of a row give to the node n, or nil if they give none. The result `filled`
// reports whether a part of the value comes from a column. The result `mapped` reports whether a column is mapped to a
// part of the value. An element of a list may have columns and constants. If all its columns are empty in this row,
// the list does not get the element.
func (m *maker) value(n *node) (v any, filled, mapped bool) {
	if n.leaf != nil {
		if n.leaf.column < 0 && n.name == fileField {
			return m.pattern(n.leaf.constant), false, false
		}
		if n.leaf.column < 0 {
			constant := n.leaf.constant
			if isDay(n.name) {
				constant = m.day(constant)
			}
			return scalar(n.name, constant), false, false
		}
		cell := m.cells[n.leaf.column]
		text, says := m.text(n.name, cell)
		if says != "" {
			m.find(Refusal, n.leaf.source, says)
		} else if says := doubt(n.name, cell); says != "" {
			m.find(Warning, n.leaf.source, fmt.Sprintf("got %s: %s", quoted(cell.Text), says))
		} else if says := doubtValue(n.name, text); says != "" {
			m.find(Warning, n.leaf.source, says)
		}
		if text == "" && m.Empty != "" {
			return cleared{}, false, true
		}
		if text == "" {
			return nil, false, true
		}
		return scalar(n.name, text), true, true
	}
	object, elements := map[string]any{}, []any{}
	for _, c := range n.children {
		inner, has, may := m.value(c)
		filled, mapped = filled || has, mapped || may
		switch {
		case inner == nil || n.list && may && !has:
		case n.list:
			elements, m.taken[n] = append(elements, inner), append(m.taken[n], c.name)
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
	m.examine(n, object)
	return object, filled, mapped
}

// cleared is the value of an empty cell that clears its field.
type cleared struct{}

// withoutCleared returns a value without cleared fields, or nil if nothing is left. It notes their paths in the row.
func (r *Row) withoutCleared(path string, value any) any {
	switch v := value.(type) {
	case cleared:
		r.cleared = append(r.cleared, path)
		return nil
	case map[string]any:
		for _, name := range sortedKeys(v) {
			if v[name] = r.withoutCleared(join(path, name), v[name]); v[name] == nil {
				delete(v, name)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = r.withoutCleared(join(path, strconv.Itoa(i)), v[i])
		}
	}
	return value
}

// decimals are the fields whose values may have a decimal comma.
var decimals = []string{"quantity", "latitude", "longitude", "elevation"}

// isDay reports whether a field is a date.
func isDay(field string) bool { return strings.HasSuffix(field, "Date") }

// text returns the text of a cell in the form that the API needs for the field, and what is wrong with it, or "". The
// cell may come from an export.
func (m Mapping) text(field string, cell sheet.Cell) (text, says string) {
	text = tidy(cells.Plain(cell.Text))
	switch {
	case cell.Kind == sheet.Missing:
		return "?", "the file has no value of this formula: open it in a spreadsheet, and save it"
	case cell.Kind == sheet.Number:
	case cell.Kind == sheet.Date:
		if day, err := time.Parse(time.DateOnly, text); err == nil && m.Dates == dayFirst && !isDay(field) {
			text = day.Format("02.01.2006") // as the sheet shows it
		}
	case slices.Contains(decimals, field):
		return m.number(text)
	case isDay(field):
		text = m.day(text)
	}
	return text, ""
}

// scalar returns the value of a field: the text itself, or a number if the API accepts only numbers there.
func scalar(field, text string) any {
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
	return strconv.QuoteToGraphic(text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
