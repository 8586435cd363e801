package export

import (
	"bytes"
	"io"
	"strings"

	"asset-registry/shared/cells"
)

// csvFile is a CSV file of a table (RFC 4180).
type csvFile struct {
	table int
	to    io.Writer
	line  bytes.Buffer
}

// openCSV returns a function that begins a CSV file of the table with this index in Tables.
func openCSV(table int) func(io.Writer) (writer, error) {
	return func(w io.Writer) (writer, error) {
		f := &csvFile{table: table, to: w}
		for i, c := range Tables[table].columns {
			f.cell(i, c.name)
		}
		return f, f.end()
	}
}

func (f *csvFile) add(a *Asset) (rows int, err error) {
	for n, row := range a.rows[f.table] {
		if err := f.addRow(row); err != nil {
			return n, err
		}
	}
	return len(a.rows[f.table]), nil
}

func (f *csvFile) addRow(row []cell) error {
	for i, c := range row {
		if !c.isNumber {
			c.text = cells.Harmless(c.text)
		}
		f.cell(i, c.text)
	}
	return f.end()
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
