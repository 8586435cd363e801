package sheet

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"asset-registry/shared/cells"
)

// Row is a row of a sheet.
type Row struct {
	Number int
	Hidden bool
	Cells  []Cell // up to the last cell with a value; valid until the next row
}

// Rows reads the rows of a sheet that are stored, from top to bottom.
type Rows struct {
	*scanner
	book  *Book
	row   Row
	cells int // all that were read
}

// Rows starts to read a sheet.
func (b *Book) Rows(s Sheet) (*Rows, error) {
	in, err := b.open(s.part)
	return &Rows{scanner: in, book: b}, err
}

// Next returns the next row, or io.EOF after the last one.
func (r *Rows) Next() (Row, error) {
	for {
		token, err := r.next()
		if err != nil {
			return Row{}, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local == "row" {
				return r.read(t)
			}
		case xml.EndElement:
			if t.Name.Local == "sheetData" {
				return Row{}, io.EOF
			}
		}
	}
}

// read reads the cells of a row, up to its end.
func (r *Rows) read(start xml.StartElement) (Row, error) {
	number, err := place(attribute(start, "r"), r.row.Number+1, maxRows)
	if err != nil || number <= r.row.Number || number > maxRows {
		return Row{}, fmt.Errorf("the row after row %d has a wrong number: %w", r.row.Number, errForm)
	}
	r.row = Row{Number: number, Hidden: isTrue(attribute(start, "hidden")), Cells: r.row.Cells[:0]}
	var c storedCell
	column, size := 0, 0
	for {
		token, err := r.next()
		if err != nil {
			return Row{}, err
		}
		if err := c.text.take(token); err != nil {
			return Row{}, fmt.Errorf("row %d: %w", number, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "c":
				c = storedCell{text: cellText{text: c.text.text[:0]}, kind: attribute(t, "t"), style: attribute(t, "s")}
				name := strings.TrimRight(attribute(t, "r"), "0123456789")
				if column, err = columnOf(name, column+1); err != nil {
					return Row{}, fmt.Errorf("row %d: %w", number, err)
				}
				r.cells++
			case "f":
				c.isFormula = true
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "c":
				cell, err := r.book.value(c)
				size += len(cell.Text)
				err = errors.Join(err, bound(r.cells, maxCells, "cells"), bound(size, maxRow, "bytes in a row"))
				if err != nil {
					return Row{}, fmt.Errorf("row %d, column %s: %w", number, cells.Letters(column), err)
				}
				r.set(column, cell)
			case "row":
				return r.row, nil
			}
		}
	}
}

// set puts a cell with a value into the row.
func (r *Rows) set(column int, cell Cell) {
	if cell.Text == "" && cell.Kind != Missing {
		return
	}
	for len(r.row.Cells) < column {
		r.row.Cells = append(r.row.Cells, Cell{Kind: Text})
	}
	r.row.Cells[column-1] = cell
}

// Headings returns the texts of a row. A cell of a merged area has the text of the first cell there, which may stand in
// a row above.
func (b *Book) Headings(s Sheet, number int) (texts []string, err error) {
	rows, err := b.Rows(s)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	above := map[[2]int]string{} // by column and row
	for row := (Row{}); row.Number < number && err == nil; {
		if row, err = rows.Next(); err == nil && row.Number <= number {
			for i, c := range row.Cells {
				if c.Text != "" {
					above[[2]int{i + 1, row.Number}] = c.Text
				}
			}
		}
		if err := bound(len(above), maxColumn, "texts above the headings"); err != nil {
			return nil, err
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	set := func(column int, text string) {
		for len(texts) < column && text != "" {
			texts = append(texts, "")
		}
		if text != "" {
			texts[column-1] = text
		}
	}
	for at, text := range above {
		if at[1] == number {
			set(at[0], text)
		}
	}
	return texts, b.each(s.part, func(t xml.StartElement) error {
		from, to, isRange := strings.Cut(attribute(t, "ref"), ":")
		if t.Name.Local != "mergeCell" || !isRange {
			return nil
		}
		left, top, err1 := position(from)
		right, bottom, err2 := position(to)
		for column := left; top <= number && number <= bottom && column <= right; column++ {
			set(column, above[[2]int{left, top}])
		}
		return errors.Join(err1, err2)
	})
}

// position returns the column and the row of the cell with this name, such as B7.
func position(name string) (column, row int, err error) {
	letters := strings.TrimRight(name, "0123456789")
	row, err = place(name[len(letters):], 0, maxRows)
	column, err2 := columnOf(letters, 0)
	return column, row, errors.Join(err, err2)
}

// place returns a number from 1, or what stands for its absence.
func place(text string, absent, most int) (int, error) {
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, errForm
	}
	return n, nil
}

// columnOf returns the number of a column from its letters, or what stands for their absence.
func columnOf(letters string, absent int) (int, error) {
	n := 0
	for _, r := range letters {
		if r < 'A' || r > 'Z' || n > maxColumn {
			return 0, errForm
		}
		n = n*26 + int(r-'A') + 1
	}
	if letters == "" {
		n = absent
	}
	if n > maxColumn {
		return 0, fmt.Errorf("a cell stands behind column %d: %w", maxColumn, errForm)
	}
	return n, nil
}

// storedCell is a cell as the file has it.
type storedCell struct {
	text        cellText
	kind, style string
	isFormula   bool
}

// cellText collects the text of a cell or a shared text, without the phonetic part.
type cellText struct {
	text      []byte
	isText    bool
	isReading bool // within the phonetic part
}

func (c *cellText) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		c.isReading = c.isReading || t.Name.Local == "rPh"
		c.isText = !c.isReading && (t.Name.Local == "t" || t.Name.Local == "v")
	case xml.EndElement:
		c.isText = false
		c.isReading = c.isReading && t.Name.Local != "rPh"
	case xml.CharData:
		if c.isText {
			c.text = append(c.text, t...)
		}
	}
	return bound(len(c.text), maxText, "bytes in a cell")
}

// value returns the value of a stored cell.
func (b *Book) value(c storedCell) (Cell, error) {
	text := string(c.text.text)
	switch c.kind {
	case "s":
		at, err := strconv.Atoi(text)
		if err != nil || at < 0 || at >= len(b.textEnds) {
			return Cell{}, fmt.Errorf("its text is not there: %w", errForm)
		}
		begin := 0
		if at > 0 {
			begin = b.textEnds[at-1]
		}
		return Cell{unescaped(string(b.texts[begin:b.textEnds[at]])), Text}, nil
	case "inlineStr", "str":
		return Cell{unescaped(text), Text}, nil
	case "b":
		return Cell{map[bool]string{true: "TRUE", false: "FALSE"}[isTrue(text)], Truth}, nil
	case "e":
		return Cell{text, Failed}, nil
	case "d":
		return Cell{strings.TrimSuffix(text, "T00:00:00"), Date}, nil
	}
	if text == "" {
		return Cell{"", map[bool]Kind{true: Missing, false: Text}[c.isFormula]}, nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return Cell{}, fmt.Errorf("it has no number: %w", errForm)
	}
	if style, err := strconv.Atoi(c.style); err == nil && style >= 0 && style < len(b.isDate) && b.isDate[style] {
		return b.date(number), nil
	}
	return Cell{decimal(number), Number}, nil
}

// decimal writes a number with at most 15 digits, as a spreadsheet shows it where its cell is wide.
func decimal(number float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(number, 'e', 14, 64), 64) // it has just been formatted
	return strconv.FormatFloat(rounded+0, 'f', -1, 64)
}

// date returns the date of a day's number. A spreadsheet counts a 29 February 1900, so days before count differently.
func (b *Book) date(day float64) Cell {
	const days = 2_958_466 // up to the end of the year 9999
	first := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case b.is1904:
		first = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case day < 60:
		first = first.AddDate(0, 0, 1)
	}
	if day < 0 || day >= days || !b.is1904 && math.Floor(day) == 60 {
		return Cell{decimal(day), Failed}
	}
	whole, rest := math.Modf(day)
	at := first.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round(rest*86400)) * time.Second)
	return Cell{strings.TrimSuffix(at.Format("2006-01-02T15:04:05"), "T00:00:00"), Date}
}

// silent matches what a format of numbers shows as it stands, and colours, languages and conditions.
var silent = regexp.MustCompile(`"[^"]*"|[\\_*].|\[[^\]]*\]`)

// isDateFormat reports whether a format of numbers shows a part of a date.
func isDateFormat(format string) bool {
	positive, _, _ := strings.Cut(silent.ReplaceAllString(format, ""), ";")
	return strings.ContainsAny(strings.ToLower(positive), "dmyhs")
}

// code matches an escaped UTF-16 unit in a text, such as _x000D_.
var code = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// unescaped returns a text without the escapes that XLSX has for characters that XML lacks.
func unescaped(text string) string {
	if !strings.Contains(text, "_x") {
		return text
	}
	return code.ReplaceAllStringFunc(text, func(unit string) string {
		value, _ := strconv.ParseUint(unit[2:6], 16, 16) // four hexadecimal digits
		return strings.Trim(string(utf16.Decode([]uint16{uint16(value)})), "\r")
	})
}
