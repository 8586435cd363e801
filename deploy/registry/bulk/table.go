package bulk

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"asset-registry.example/client"
)

// rogue is the beginning of the registry's text about a field that does not exist (docs/contract.md, "Field
// rules").
const rogue = "Rogue field"

// table reads a CSV file.
type table struct {
	mapping   Mapping
	csv       *csv.Reader
	bound     *bounded
	header    []string
	root      *node // tree of the mapping for the columns of the header
	reference int   // index of the column with the reference
	row       int
}

// newTable reads the header. It returns all faults of the header and the mapping.
func newTable(in io.Reader, m Mapping) (reader, []Fault, error) {
	begun := bufio.NewReader(in)
	begin, err := begun.Peek(len(utf8Mark))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if says := markFault(begin); says != "" {
		return nil, []Fault{{Text: says}}, nil
	}
	var decoded io.Reader = begun
	marked := bytes.Equal(begin, utf8Mark)
	if marked {
		_, _ = begun.Discard(len(utf8Mark)) // cannot fail, because Peek has read these bytes
	}
	if m.Encoding == cp1251 {
		if marked {
			return nil, []Fault{{Text: "the file begins with the mark of UTF-8, and the mapping says " + cp1251}}, nil
		}
		decoded = charmap.Windows1251.NewDecoder().Reader(begun)
	}
	t := &table{mapping: m, bound: &bounded{in: decoded}}
	t.csv = csv.NewReader(t.bound)
	t.csv.Comma = rune(m.Delimiter[0])
	t.csv.FieldsPerRecord = -1
	t.csv.ReuseRecord = true
	cells, faults, err := t.record()
	if errors.Is(err, io.EOF) {
		return nil, []Fault{{Text: "the file has no header"}}, nil
	}
	if err != nil || len(faults) > 0 {
		return nil, faults, err
	}
	for _, cell := range cells {
		t.header = append(t.header, strings.TrimSpace(cell))
	}
	return t, t.headerFaults(), nil
}

// record reads the cells of the next record, and checks their encoding.
func (t *table) record() ([]string, []Fault, error) {
	t.row++
	t.bound.left = maxRow
	cells, err := t.csv.Read()
	if broken, ok := errors.AsType[*csv.ParseError](err); ok && !errors.Is(err, errRow) {
		says := fmt.Sprintf("line %d, byte %d: %v", broken.Line, broken.Column, broken.Err)
		return nil, []Fault{{Row: t.row, Text: says}}, errBroken
	}
	if errors.Is(err, errRow) {
		return nil, []Fault{{Row: t.row, Text: errRow.Error()}}, errBroken
	}
	if err != nil {
		return nil, nil, err
	}
	if len(cells) > maxColumns {
		says := fmt.Sprintf("the row has %d columns: at most %d are read", len(cells), maxColumns)
		return nil, []Fault{{Row: t.row, Text: says}}, nil
	}
	var faults []Fault
	for i, cell := range cells {
		if t.mapping.Encoding == utf8Encoding && !utf8.ValidString(cell) {
			const says = "the text is not UTF-8: perhaps the mapping lacks encoding: " + cp1251
			faults = append(faults, Fault{t.row, t.column(i), says})
		}
		if t.mapping.Encoding == cp1251 && strings.ContainsRune(cell, utf8.RuneError) {
			faults = append(faults, Fault{t.row, t.column(i), "the text has a byte that " + cp1251 + " does not have"})
		}
	}
	return cells, faults, nil
}

// errBroken ends the reading of a file if the rest of it cannot be split into rows.
var errBroken = errors.New("the rest of the file cannot be read")

// column returns the name of a column, for a fault.
func (t *table) column(i int) string {
	if i < len(t.header) {
		return t.header[i]
	}
	return fmt.Sprintf("number %d", i+1)
}

// headerFaults compares the header with the mapping, and returns the faults.
func (t *table) headerFaults() []Fault {
	m := t.mapping
	var faults []Fault
	seen := map[string]bool{}
	for i, name := range t.header {
		_, mapped := m.Columns[name]
		switch {
		case name == "":
			faults = append(faults, Fault{1, fmt.Sprintf("number %d", i+1), "the column has no name"})
		case seen[name]:
			faults = append(faults, Fault{1, name, "two columns have this name"})
		case !mapped && name != m.Reference:
			says := `the mapping does not name this column: give it a field, or "" to ignore it`
			faults = append(faults, Fault{1, name, says})
		}
		seen[name] = true
	}
	for _, name := range sortedKeys(m.Columns) {
		if !seen[name] {
			faults = append(faults, Fault{1, name, "the mapping names this column, and the file has no such column"})
		}
	}
	if _, mapped := m.Columns[m.Reference]; !seen[m.Reference] && !mapped {
		const says = "the mapping takes the reference from this column, and the file lacks it"
		faults = append(faults, Fault{1, m.Reference, says})
	}
	other := map[string]string{",": ";", ";": ","}[m.Delimiter]
	if len(t.header) == 1 && strings.Contains(t.header[0], other) {
		says := fmt.Sprintf("the header has one column: perhaps the delimiter is %q", other)
		faults = append(faults, Fault{Row: 1, Text: says})
	}
	t.reference = slices.Index(t.header, m.Reference)
	var wrong []Fault
	t.root, wrong = m.tree(t.header)
	return append(append(faults, wrong...), t.unknownFields()...)
}

// unknownFields returns a fault for each field in the mapping that assets do not have.
func (t *table) unknownFields() (faults []Fault) {
	cells := make([]string, len(t.header))
	for i := range cells {
		cells[i] = "x"
	}
	row := t.make(cells)
	found := map[string]bool{}
	for _, f := range append(row.faults(), row.documentFaults()...) {
		if strings.HasPrefix(f.Text, rogue) && !found[f.Column] {
			found[f.Column] = true
			faults = append(faults, Fault{0, f.Column, "the mapping names a field that does not exist. " + f.Text})
		}
	}
	return faults
}

// The method `next` implements reader.
func (t *table) next() (Row, []Fault, error) {
	cells, faults, err := t.record()
	if err != nil || len(faults) > 0 {
		return Row{Number: t.row}, faults, err
	}
	if len(cells) != len(t.header) {
		says := fmt.Sprintf("the row has %d columns, and the header %d", len(cells), len(t.header))
		return Row{Number: t.row}, []Fault{{Row: t.row, Text: says}}, nil
	}
	return t.make(cells), nil, nil
}

// make makes a row from its cells. The argument `cells` has one cell for each column of the header.
func (t *table) make(cells []string) Row {
	row := Row{Number: t.row, Asset: client.Fields{}, column: t.root.at}
	if t.reference >= 0 {
		row.Reference = strings.TrimSpace(cells[t.reference])
		if row.Reference != "" {
			row.Reference = t.mapping.Prefix + row.Reference
		}
	}
	for _, n := range t.root.children {
		value, _, _ := t.mapping.value(n, cells)
		switch {
		case value == nil:
		case n.name == documents:
			row.Documents = documentsOf(value)
		default:
			row.Asset[n.name] = value
		}
	}
	row.asset, _ = json.Marshal(row.Asset) // cannot fail, because the values are texts and numbers
	return row
}

// documentsOf returns the documents in the value that a mapping has made.
func documentsOf(value any) (found []Document) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, element := range list {
		fields, _ := element.(map[string]any)
		d := Document{Fields: client.Fields(fields)}
		d.File, _ = fields[fileField].(string)
		delete(fields, fileField)
		found = append(found, d)
	}
	return found
}
