package export

import (
	"bytes"
	"io"
	"strings"
)

// table is a CSV file (RFC 4180).
type table struct {
	to   io.Writer
	line bytes.Buffer
}

func openCSV(w io.Writer) (writer, error) {
	t := &table{to: w}
	for i, name := range Columns() {
		t.cell(i, name)
	}
	return t, t.end()
}

func (t *table) add(_ *record, row []cell) error {
	for i, c := range row {
		if !c.isNumber {
			c.text = harmless(c.text)
		}
		t.cell(i, c.text)
	}
	return t.end()
}

// cell adds a cell to the line. encoding/csv would change line breaks within texts.
func (t *table) cell(i int, text string) {
	if i > 0 {
		t.line.WriteByte(',')
	}
	if strings.ContainsAny(text, "\",\r\n") || strings.TrimSpace(text) != text {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	t.line.WriteString(text)
}

func (t *table) end() error {
	t.line.WriteString("\r\n")
	_, err := t.line.WriteTo(t.to)
	return err
}

func (t *table) close() error { return nil }
