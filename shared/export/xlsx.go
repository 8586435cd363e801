package export

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"asset-registry/shared/cells"
)

// sheet is an XLSX file (ECMA-376). Each row is written to the file when its asset is added.
type sheet struct {
	file  *zip.Writer
	to    io.Writer
	line  bytes.Buffer
	pages []sheetPage // the first is being written
	index int         // its number
	rows  int         // rows that it has
}

// sheetPage is a sheet of a file.
type sheetPage struct {
	name    string
	widths  []int // of the columns, in characters; the others have 18
	hasHead bool  // the first row is a header: bold, always shown, with a filter
}

const (
	xmlHead       = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	schemas       = "http://schemas.openxmlformats.org/"
	relationships = schemas + "officeDocument/2006/relationships"
	main          = schemas + "spreadsheetml/2006/main"
	sheetType     = "application/vnd.openxmlformats-officedocument.spreadsheetml."
)

// sheetStyles are the styles of cells: 0 as a spreadsheet likes, 1 text, 2 a heading, 3 a time.
const sheetStyles = `<styleSheet xmlns="` + main + `">` +
	`<numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd\ hh:mm"/></numFmts>` +
	`<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>` +
	`<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>` +
	`<fills count="2"><fill><patternFill patternType="none"/></fill>` +
	`<fill><patternFill patternType="gray125"/></fill></fills>` +
	`<borders count="1"><border/></borders><cellStyleXfs count="1"><xf numFmtId="0"/></cellStyleXfs>` +
	`<cellXfs count="4"><xf numFmtId="0"/><xf numFmtId="49" applyNumberFormat="1"/>` +
	`<xf numFmtId="49" fontId="1" applyNumberFormat="1" applyFont="1" applyAlignment="1">` +
	`<alignment vertical="top" wrapText="1"/></xf><xf numFmtId="164" applyNumberFormat="1"/></cellXfs>` +
	`<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`

func openXLSX(w io.Writer, columns []column) (writer, error) {
	s, err := newSheet(w, sheetPage{name: "assets"})
	if err != nil {
		return nil, err
	}
	return s, s.addRow(namesOf(columns))
}

// newSheet begins a file. Its first sheet has no rows yet.
func newSheet(w io.Writer, pages ...sheetPage) (*sheet, error) {
	s := &sheet{file: zip.NewWriter(w), pages: pages}
	relation := func(id int, kind, target string) string {
		return fmt.Sprintf(`<Relationship Id="rId%d" Type="%s/%s" Target="%s"/>`, id, relationships, kind, target)
	}
	var types, names, related string
	for i, p := range pages {
		part := fmt.Sprintf("worksheets/sheet%d.xml", i+1)
		types += `<Override PartName="/xl/` + part + `" ContentType="` + sheetType + `worksheet+xml"/>`
		names += fmt.Sprintf(`<sheet name="%s" sheetId="%d" r:id="rId%[2]d"/>`, p.name, i+1)
		related += relation(i+1, "worksheet", part)
	}
	for _, p := range []struct{ name, content string }{
		{"[Content_Types].xml", `<Types xmlns="` + schemas + `package/2006/content-types">` +
			`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Override PartName="/xl/workbook.xml" ContentType="` + sheetType + `sheet.main+xml"/>` +
			`<Override PartName="/xl/styles.xml" ContentType="` + sheetType + `styles+xml"/>` + types + `</Types>`},
		{"_rels/.rels", `<Relationships xmlns="` + schemas + `package/2006/relationships">` +
			relation(1, "officeDocument", "xl/workbook.xml") + `</Relationships>`},
		{"xl/workbook.xml", `<workbook xmlns="` + main + `" xmlns:r="` + relationships + `"><sheets>` + names +
			`</sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="` + schemas + `package/2006/relationships">` + related +
			relation(len(pages)+1, "styles", "styles.xml") + `</Relationships>`},
		{"xl/styles.xml", sheetStyles},
	} {
		to, err := s.file.Create(p.name)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(to, xmlHead+p.content); err != nil {
			return nil, err
		}
	}
	return s, s.begin()
}

// begin begins the next sheet.
func (s *sheet) begin() (err error) {
	s.index, s.rows = s.index+1, 0
	if s.to, err = s.file.Create(fmt.Sprintf("xl/worksheets/sheet%d.xml", s.index)); err != nil {
		return err
	}
	s.line.WriteString(xmlHead + `<worksheet xmlns="` + main + `">`)
	if s.pages[0].hasHead {
		s.line.WriteString(`<sheetViews><sheetView workbookViewId="0">` +
			`<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>`)
	}
	s.line.WriteString("<cols>")
	for i, width := range s.pages[0].widths {
		fmt.Fprintf(&s.line, `<col min="%d" max="%[1]d" width="%d" style="1" customWidth="1"/>`, i+1, width)
	}
	fmt.Fprintf(&s.line, `<col min="%d" max="%d" width="18" style="1" customWidth="1"/></cols><sheetData>`,
		len(s.pages[0].widths)+1, mostColumns)
	return nil
}

// mostColumns is a number of columns that no table has.
const mostColumns = 64

// next ends a sheet, and begins the next one.
func (s *sheet) next() error {
	if err := s.end(); err != nil {
		return err
	}
	s.pages = s.pages[1:]
	return s.begin()
}

// end writes the end of a sheet.
func (s *sheet) end() error {
	s.line.WriteString("</sheetData>")
	if p := s.pages[0]; p.hasHead {
		fmt.Fprintf(&s.line, `<autoFilter ref="A1:%s%d"/>`, cells.Letters(len(p.widths)), max(1, s.rows))
	}
	s.line.WriteString("</worksheet>")
	_, err := s.line.WriteTo(s.to)
	return err
}

func (s *sheet) add(a *Asset) (rows int, err error) { return 1, s.addRow(a.rows[ofAssets][0]) }

func (s *sheet) addRow(row []cell) error {
	s.rows++
	fmt.Fprintf(&s.line, `<row r="%d">`, s.rows)
	for i, c := range row {
		if c.text == "" {
			continue
		}
		s.line.WriteString(`<c r="` + cells.Letters(i+1) + strconv.Itoa(s.rows))
		switch number, isTime := serial(c); {
		case isTime:
			s.line.WriteString(`" s="3"><v>` + number + "</v></c>")
		case c.isNumber && isDouble(c.text):
			s.line.WriteString(`" s="0"><v>` + c.text + "</v></c>")
		default:
			s.addText(c)
		}
	}
	s.line.WriteString("</row>\n")
	_, err := s.line.WriteTo(s.to)
	return err
}

// addText adds a text to a cell that has begun.
func (s *sheet) addText(c cell) {
	style, text := "1", c.text
	switch {
	case s.rows == 1 && s.pages[0].hasHead:
		style = "2"
	case len(text) > 255: // old spreadsheets show ### for a long cell with the format of texts
		style = "0"
	}
	s.line.WriteString(`" s="` + style + `" t="inlineStr"><is><t xml:space="preserve">`)
	if !c.isNumber {
		text = shortened(cells.Harmless(strings.Map(inXML, text)))
	}
	if code.MatchString(text) {
		text = strings.ReplaceAll(text, "_x", "_x005F_x")
	}
	_ = xml.EscapeText(&s.line, []byte(text)) // writing to a buffer never fails
	s.line.WriteString("</t></is></c>")
}

// timeForm is the form of a cell with a time.
const timeForm = "2006-01-02 15:04"

// serial returns the number with which a spreadsheet stores a time: days since 30 December 1899.
func serial(c cell) (number string, isTime bool) {
	at, err := time.Parse(timeForm, c.text)
	if !c.isTime || err != nil {
		return "", false
	}
	days := at.Sub(time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)).Minutes() / (24 * 60)
	return strconv.FormatFloat(days, 'f', 6, 64), true
}

func (s *sheet) close() error {
	if err := s.end(); err != nil {
		return err
	}
	return s.file.Close()
}

// inXML returns the character that xml.EscapeText puts in the place of r. Harmless needs the text that a sheet shows.
func inXML(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
		return unicode.ReplacementChar
	}
	return r
}

// code matches an escaped character, such as _x0041_, which a spreadsheet would show as A.
var code = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// mostInCell is the largest number of UTF-16 units in a cell.
const mostInCell = 32_767

// shortened returns a text that fits into a cell. An ellipsis replaces the part that does not fit.
func shortened(text string) string {
	units, last := 0, 0 // last is the byte position at which the ellipsis replaces the rest
	for at, r := range text {
		if units < mostInCell {
			last = at
		}
		if units += utf16.RuneLen(r); units > mostInCell {
			return text[:last] + "…"
		}
	}
	return text
}

// isDouble reports whether a spreadsheet keeps all digits of a number. A spreadsheet stores 64-bit floats and
// shows 15 digits.
func isDouble(number string) bool {
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	digits = strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(digits), "0")
	_, err := strconv.ParseFloat(number, 64)
	return err == nil && len(digits) <= 15
}
