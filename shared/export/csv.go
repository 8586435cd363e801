package export

import (
	"bytes"
	"io"
	"strings"

	"asset-registry/shared/cells"
)

// csvFile is a CSV file of a table (RFC 4180).
type csvFile struct {
	table Table
	to    io.Writer
	line  bytes.Buffer
	cells []cell // memory of a row
}

// openCSV returns a function that begins a CSV file of the table with this index in Tables.
func openCSV(table int) func(io.Writer) (writer, error) {
	return func(w io.Writer) (writer, error) {
		f := &csvFile{table: Tables[table], to: w}
		for i, c := range f.table.columns {
			f.cell(i, c.name)
		}
		return f, f.end()
	}
}

func (f *csvFile) add(a *Asset) (rows int, err error) {
	rows = f.table.rows(&a.record)
	for row := range rows {
		for i, c := range f.row(a, row) {
			if !c.isNumber {
				c.text = cells.Harmless(c.text)
			}
			f.cell(i, c.text)
		}
		if err := f.end(); err != nil {
			return row, err
		}
	}
	return rows, nil
}

func (f *csvFile) row(a *Asset, row int) []cell {
	if f.table.Name == Tables[0].Name {
		return a.row()
	}
	f.cells = f.table.row(f.cells[:0], &a.record, row)
	return f.cells
}

// cell adds a cell to the line. It does not use encoding/csv, because that package changes line breaks within texts.
func (f *csvFile) cell(i int, text string) {
	if i > 0 {
		f.line.WriteByte(',')
	}
	if strings.ContainsAny(text, "\",\r\n") || strings.TrimSpace(text) != text {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	f.line.WriteString(text)
}

func (f *csvFile) end() error {
	f.line.WriteString("\r\n")
	_, err := f.line.WriteTo(f.to)
	return err
}

func (f *csvFile) close() error { return nil }
