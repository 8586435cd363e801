package export

import (
	"bytes"
	"io"
	"strings"

	"asset-registry/shared/cells"
)

// csvFile is a CSV file of a table (RFC 4180).
type csvFile struct {
	table     int
	to        io.Writer
	separator byte
	line      bytes.Buffer
}

// openCSV returns a function that begins a CSV file of the table with this index in Tables.
func openCSV(table int) func(io.Writer, []column) (writer, error) {
	return func(w io.Writer, columns []column) (writer, error) {
		f := &csvFile{table: table, to: w, separator: ','}
		return f, f.addRow(namesOf(columns))
	}
}

// namesOf returns the row with the names of columns.
func namesOf(columns []column) (row []cell) {
	for _, c := range columns {
		row = append(row, cell{text: c.name})
	}
	return row
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
		} else if f.separator == ';' {
			c.text = strings.Replace(c.text, ".", ",", 1)
		}
		f.cell(i, c.text)
	}
	return f.end()
}

// cell adds a cell to the line. It does not use encoding/csv, because that package changes line breaks within texts.
func (f *csvFile) cell(i int, text string) {
	if i > 0 {
		f.line.WriteByte(f.separator)
	}
	if strings.ContainsAny(text, "\"\r\n"+string(f.separator)) || strings.TrimSpace(text) != text {
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
