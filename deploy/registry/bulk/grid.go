package bulk

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"asset-registry/deploy/registry/bulk/sheet"
)

// csvFile gives the rows of a CSV file.
type csvFile struct {
	csv   *csv.Reader
	bound *bounded
	row   sheet.Row
}

// newCSV opens a CSV file. The argument `begin` has its first bytes. It returns why the file cannot be read, or "".
func newCSV(in io.Reader, begin []byte, m Mapping) (c *csvFile, says string) {
	marked := bytes.HasPrefix(begin, utf8Mark)
	decoded := io.Reader(bufio.NewReader(in))
	switch {
	case isUTF16(begin):
		decoded = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(decoded)
	case marked && m.Encoding == cp1251:
		return nil, "the file begins with the mark of UTF-8, and the mapping says " + cp1251
	case marked:
		_, _ = io.CopyN(io.Discard, decoded, int64(len(utf8Mark))) // an error comes again
	case m.Encoding == cp1251:
		decoded = charmap.Windows1251.NewDecoder().Reader(decoded)
	}
	text := bufio.NewReaderSize(decoded, 1<<16)
	head, _ := text.Peek(1 << 16) // an error comes again
	c = &csvFile{bound: &bounded{in: text}}
	c.csv = csv.NewReader(c.bound)
	c.csv.Comma = rune(cmp.Or(m.Delimiter, delimiterOf(head, m.headerRow()))[0])
	c.csv.FieldsPerRecord = -1
	c.csv.ReuseRecord = true
	return c, ""
}

// delimiterOf returns the delimiter that occurs most often in the line of the header.
func delimiterOf(head []byte, row int) string {
	lines := bytes.SplitAfterN(head, []byte("\n"), row+1)
	line := lines[min(row, len(lines))-1]
	return slices.MaxFunc([]string{",", ";", "\t"}, func(a, b string) int {
		return bytes.Count(line, []byte(a)) - bytes.Count(line, []byte(b))
	})
}

func (c *csvFile) next() (sheet.Row, error) {
	c.row.Number++
	c.bound.left = maxRow
	cells, err := c.csv.Read()
	if errors.Is(err, errRow) {
		return c.row, damage(errRow.Error())
	}
	if broken, ok := errors.AsType[*csv.ParseError](err); ok {
		return c.row, damage(fmt.Sprintf("line %d, byte %d: %v", broken.Line, broken.Column, broken.Err))
	}
	c.row.Cells = c.row.Cells[:0]
	for _, cell := range cells {
		c.row.Cells = append(c.row.Cells, sheet.Cell{Text: cell})
	}
	return c.row, err
}

// xlsxFile gives the rows under the header of a sheet.
type xlsxFile struct {
	sheets []sheet.Sheet
	read   int // index of the sheet
	rows   *sheet.Rows
	header int // number of the row
}

// open opens the sheet that the mapping names. It returns the texts of the header, and why they cannot be read, or "".
func (x *xlsxFile) open(s Source, m Mapping) (header []string, says string) {
	size, err := s.File.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err.Error()
	}
	book, err := sheet.Open(s.File, size)
	if err != nil {
		return nil, err.Error()
	}
	at := slices.IndexFunc(book.Sheets, func(s sheet.Sheet) bool { return s.Name == m.Sheet })
	if number, err := strconv.Atoi(m.Sheet); at < 0 && err == nil {
		at = number - 1
	}
	if m.Sheet == "" {
		at = slices.IndexFunc(book.Sheets, func(s sheet.Sheet) bool { return !s.Hidden })
	}
	if at < 0 || at >= len(book.Sheets) {
		return nil, fmt.Sprintf("the file has no sheet %s: it has %s", quoted(m.Sheet), sheetNames(book.Sheets))
	}
	x.sheets, x.read, x.header = book.Sheets, at, m.headerRow()
	header, err = book.Headings(book.Sheets[at], x.header)
	if err == nil {
		x.rows, err = book.Rows(book.Sheets[at])
	}
	if err != nil {
		return nil, err.Error()
	}
	return header, ""
}

// otherSheets says which sheets are not read.
func (x *xlsxFile) otherSheets() []Finding {
	if len(x.sheets) < 2 {
		return nil
	}
	others := slices.Delete(slices.Clone(x.sheets), x.read, x.read+1)
	says := fmt.Sprintf("the sheet %s is read, and not %s", quoted(x.sheets[x.read].Name), sheetNames(others))
	return []Finding{{Fault{Text: says}, Note, nil}}
}

// sheetNames returns the names of sheets for a message.
func sheetNames(sheets []sheet.Sheet) string {
	const most = 20
	var names []string
	for _, s := range sheets[:min(most, len(sheets))] {
		name := quoted(s.Name)
		if s.Hidden {
			name += " (hidden)"
		}
		names = append(names, name)
	}
	says := strings.Join(names, ", ")
	if len(sheets) > most {
		says += " and others"
	}
	return says
}

func (x *xlsxFile) next() (sheet.Row, error) {
	row, err := x.rows.Next()
	for err == nil && row.Number <= x.header {
		row, err = x.rows.Next()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return row, damage(err.Error())
	}
	return row, err
}
