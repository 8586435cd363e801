package bulk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry.example/client"
	"asset-registry/deploy/registry/bulk/sheet"
)

// rogue is the beginning of the registry's text about a field that does not exist (docs/contract.md, "Field
// rules").
const rogue = "Rogue field"

// grid gives the rows of a table. The number of a row is that in a spreadsheet. The error after the last row is io.EOF,
// and damage if the rest cannot be split into rows.
type grid interface {
	next() (sheet.Row, error)
}

// damage says what is wrong with the form of a file.
type damage string

// Error implements error.
func (d damage) Error() string { return string(d) }

// table reads assets from the rows of a grid.
type table struct {
	mapping   Mapping
	files     *Folder // nil: the rows have no files
	rows      grid
	header    []string
	root      *node // tree of the mapping for the columns of the header
	reference int   // index of the column with the reference
	data      []int // indexes of the columns that make a row more than a heading
	row       int
	hidden    []int             // numbers of the rows that a spreadsheet hides
	pending   []Finding         // findings in the file that go with the next row
	told      map[Fault]bool    // warnings about constants
	values    map[string]named  // rows by the hashes of their values
	isKnown   func(string) bool // nil: no row is known
}

// open opens a file and reads its header. It returns why the file is none that can be read.
func (t *table) open(s Source) (faults []Fault, err error) {
	begin := make([]byte, 512)
	n, err := s.File.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	begin, err = begin[:n], nil
	says := sheet.Named(begin)
	var header []string
	switch {
	case says != "":
	case bytes.HasPrefix(begin, []byte("PK\x03\x04")):
		var book xlsxFile
		if header, says = book.open(s, t.mapping); says == "" {
			t.rows, t.pending = &book, book.otherSheets()
		}
	default:
		if t.rows, says = newCSV(s.File, begin, t.mapping); says == "" {
			header, faults, err = t.csvHeader()
		}
	}
	if says == "" && err == nil && len(header)+len(faults) == 0 {
		says = "the file has no header"
	}
	for _, name := range header {
		t.header = append(t.header, heading(name))
	}
	for len(t.header) > 0 && t.header[len(t.header)-1] == "" {
		t.header = t.header[:len(t.header)-1]
	}
	for i, name := range t.header {
		if _, isMapped := t.mapping.Columns[columnName(i)]; name == "" || isMapped || t.mapping.Reference == columnName(i) {
			t.header[i] = columnName(i)
		}
	}
	if says != "" {
		faults = append(faults, Fault{Text: says})
	}
	return faults, err
}

// csvHeader reads the rows of a CSV file up to its header.
func (t *table) csvHeader() (header []string, faults []Fault, err error) {
	for t.row < t.mapping.headerRow() {
		row, faults, err := t.record()
		if errors.Is(err, io.EOF) {
			return nil, nil, nil
		}
		if err != nil || len(faults) > 0 {
			return nil, faults, err
		}
		header = nil
		for _, c := range row.Cells {
			header = append(header, c.Text)
		}
	}
	return header, nil, nil
}

// record reads the next row, and checks the encoding of its cells.
func (t *table) record() (sheet.Row, []Fault, error) {
	row, err := t.rows.next()
	t.row = row.Number
	if says, ok := errors.AsType[damage](err); ok {
		return row, []Fault{{Row: t.row, Text: string(says)}}, errBroken
	}
	if err != nil {
		return row, nil, err
	}
	if len(row.Cells) > maxColumns {
		says := fmt.Sprintf("the row has %d columns: at most %d are read", len(row.Cells), maxColumns)
		return row, []Fault{{Row: t.row, Text: says}}, nil
	}
	var faults []Fault
	for i, cell := range row.Cells {
		switch {
		case !utf8.ValidString(cell.Text):
			const says = "the text is not UTF-8: perhaps the mapping lacks encoding: " + cp1251
			faults = append(faults, Fault{t.row, t.column(i), says})
		case t.mapping.Encoding == cp1251 && strings.ContainsRune(cell.Text, utf8.RuneError):
			faults = append(faults, Fault{t.row, t.column(i), "the text has a byte that " + cp1251 + " does not have"})
		}
	}
	return row, faults, nil
}

// errBroken ends the reading of a file if the rest of it cannot be split into rows.
var errBroken = errors.New("the rest of the file cannot be read")

// column returns the name of a column, for a fault.
func (t *table) column(i int) string {
	if i < len(t.header) {
		return t.header[i]
	}
	return columnName(i)
}

// headerFaults compares the header with the mapping, and returns the faults.
func (t *table) headerFaults() []Fault {
	m := t.mapping
	var faults []Fault
	seen := map[string]bool{}
	for i, name := range t.header {
		_, mapped := m.Columns[name]
		switch {
		case name == columnName(i): // it has no heading, and perhaps no values
		case seen[name]:
			const says = "two columns have this name: call one %s, or give the row of the headings as header"
			faults = append(faults, Fault{m.headerRow(), name, fmt.Sprintf(says, columnName(i))})
		case !mapped && name != m.Reference:
			says := `the mapping does not name this column: give it a field, or "" to ignore it`
			faults = append(faults, Fault{m.headerRow(), name, says})
		}
		seen[name] = true
	}
	for _, name := range sortedKeys(m.Columns) {
		if !seen[name] {
			const says = "the mapping names this column, and the file has no such column"
			if t.isKnown != nil {
				t.pending = append(t.pending, Finding{Fault{m.headerRow(), name, says + ": it changes nothing"}, Note, nil})
				continue
			}
			faults = append(faults, Fault{m.headerRow(), name, says})
		}
	}
	if _, mapped := m.Columns[m.Reference]; !seen[m.Reference] && !mapped {
		const says = "the mapping takes the reference from this column, and the file lacks it"
		faults = append(faults, Fault{m.headerRow(), m.Reference, says})
	}
	other := map[string]string{",": ";", ";": ",", "\t": ";"}[m.Delimiter]
	if len(t.header) == 1 && other != "" && strings.Contains(t.header[0], other) {
		says := fmt.Sprintf("the header has one column: perhaps the delimiter is %q", other)
		faults = append(faults, Fault{Row: m.headerRow(), Text: says})
	}
	t.reference = slices.Index(t.header, m.Reference)
	var wrong []Fault
	t.root, wrong = m.tree(t.header)
	t.data = t.dataColumns()
	return append(append(faults, wrong...), t.unknownFields()...)
}

// unknownFields returns a fault for each field in the mapping that assets do not have.
func (t *table) unknownFields() (faults []Fault) {
	cells := make([]sheet.Cell, len(t.header))
	for i := range cells {
		cells[i].Text = "1"
	}
	row := t.make(cells)
	clear(t.told)
	found := map[string]bool{}
	for _, f := range append(row.faults(false), row.documentFaults()...) {
		if strings.HasPrefix(f.Text, rogue) && !found[f.Column] {
			found[f.Column] = true
			faults = append(faults, Fault{0, f.Column, "the mapping names a field that does not exist. " + f.Text})
		}
	}
	return faults
}

// The method `next` implements reader.
func (t *table) next() (row Row, faults []Fault, err error) {
	read, faults, err := t.lot()
	row.Number = t.row
	if read.Hidden && err == nil {
		t.hidden = append(t.hidden, t.row)
	}
	if errors.Is(err, io.EOF) && len(t.hidden) > 0 {
		says := fmt.Sprintf("%d hidden rows are read; the first is row %d", len(t.hidden), t.hidden[0])
		t.pending = append(t.pending, Finding{Fault{Text: says}, Note, nil})
	}
	switch {
	case err != nil || len(faults) > 0:
	default:
		row = t.make(read.Cells)
		if former := t.same(read.Cells, row.Reference); former > 0 {
			says := fmt.Sprintf("row %d has the same values under another reference", former)
			row.found = append(row.found, Finding{Fault{Row: t.row, Text: says}, Warning, nil})
		}
	}
	for _, c := range read.Cells {
		row.cells = append(row.cells, c.Text)
	}
	row.found, t.pending = append(t.pending, row.found...), nil
	return row, faults, err
}

// lot returns the next row that is neither empty nor skipped. It has at least as many cells as the header.
func (t *table) lot() (sheet.Row, []Fault, error) {
	for {
		row, faults, err := t.record()
		if err != nil || len(faults) > 0 {
			return row, faults, err
		}
		for len(row.Cells) < len(t.header) {
			row.Cells = append(row.Cells, sheet.Cell{Kind: sheet.Text})
		}
		words := ""
		for i, c := range row.Cells {
			text := heading(c.Text)
			words = cmp.Or(words, text)
			if _, mapped := t.mapping.Columns[t.column(i)]; text != "" && !mapped && t.column(i) == columnName(i) {
				says := "the column has no heading, and this cell has a value: the mapping names it " + columnName(i)
				faults = append(faults, Fault{t.row, columnName(i), says})
			}
		}
		if words != "" && !t.isSkipped(row.Cells, words) {
			return row, faults, nil
		}
		if words != "" {
			t.pending = append(t.pending, Finding{Fault{Row: t.row, Text: quoted(words)}, Skipped, nil})
		}
	}
}

// make makes a row from its cells. The argument `cells` has a cell for each column of the header.
func (t *table) make(cells []sheet.Cell) Row {
	m := maker{t.mapping, t.header, cells, Row{Number: t.row, Asset: client.Fields{}}, t.told, map[*node][]string{}}
	m.row.column = func(path string) string { return t.root.at(path, m.taken) }
	m.row.dates = cmp.Or(t.mapping.Dates, isoDates)
	row := &m.row
	if t.reference >= 0 {
		if reference := tidy(cells[t.reference].Text); reference != "" {
			row.Reference = WriteReference(t.mapping.Prefix + reference)
		}
	}
	for _, n := range t.root.children {
		value, _, _ := m.value(n)
		if n.name == documents {
			if value = (&Row{}).withoutCleared("", value); value != nil {
				row.Documents, m.taken[n] = m.documents(value, m.taken[n], t.files)
			}
		} else if value = row.withoutCleared(n.name, value); value != nil {
			row.Asset[n.name] = value
		}
	}
	row.lists = map[string][]string{}
	t.root.lists("", m.taken, row.lists)
	row.asset, _ = json.Marshal(row.Asset) // cannot fail, because the values are texts and numbers
	return *row
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
