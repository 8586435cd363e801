package export

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"asset-registry/shared/cells"
)

// sheet is an XLSX file (ECMA-376) with one sheet. Each row is written to the file when its asset is added.
type sheet struct {
	file *zip.Writer
	to   io.Writer
	line bytes.Buffer
}

const (
	xmlHead       = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	schemas       = "http://schemas.openxmlformats.org/"
	relationships = schemas + "officeDocument/2006/relationships"
	main          = schemas + "spreadsheetml/2006/main"
	sheetType     = "application/vnd.openxmlformats-officedocument.spreadsheetml."
)

// sheetParts are the parts of the file before the sheet.
var sheetParts = []struct{ name, content string }{
	{"[Content_Types].xml", `<Types xmlns="` + schemas + `package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Override PartName="/xl/workbook.xml" ContentType="` + sheetType + `sheet.main+xml"/>` +
		`<Override PartName="/xl/worksheets/sheet1.xml" ContentType="` + sheetType + `worksheet+xml"/></Types>`},
	{"_rels/.rels", `<Relationships xmlns="` + schemas + `package/2006/relationships"><Relationship Id="rId1" Type="` +
		relationships + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
	{"xl/workbook.xml", `<workbook xmlns="` + main + `" xmlns:r="` + relationships + `"><sheets>` +
		`<sheet name="assets" sheetId="1" r:id="rId1"/></sheets></workbook>`},
	{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="` + schemas + `package/2006/relationships">` +
		`<Relationship Id="rId1" Type="` + relationships + `/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`},
}

func openXLSX(w io.Writer) (writer, error) {
	s, err := newSheet(w)
	if err != nil {
		return nil, err
	}
	var names []cell
	for _, c := range Tables[0].columns {
		names = append(names, cell{text: c.name})
	}
	return s, s.addRow(names)
}

// newSheet begins a file. Its sheet has no rows yet.
func newSheet(w io.Writer) (*sheet, error) {
	s := &sheet{file: zip.NewWriter(w)}
	for _, p := range sheetParts {
		to, err := s.file.Create(p.name)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(to, xmlHead+p.content); err != nil {
			return nil, err
		}
	}
	var err error
	if s.to, err = s.file.Create("xl/worksheets/sheet1.xml"); err != nil {
		return nil, err
	}
	s.line.WriteString(xmlHead + `<worksheet xmlns="` + main + `"><sheetData>`)
	return s, nil
}

func (s *sheet) add(a *Asset) (rows int, err error) { return 1, s.addRow(a.rows[ofAssets][0]) }

func (s *sheet) addRow(row []cell) error {
	s.line.WriteString("<row>")
	for _, c := range row {
		switch {
		case c.text == "":
			s.line.WriteString("<c/>")
		case c.isNumber && isDouble(c.text):
			s.line.WriteString("<c><v>" + c.text + "</v></c>")
		default:
			s.line.WriteString(`<c t="inlineStr"><is><t xml:space="preserve">`)
			text := c.text
			if !c.isNumber {
				text = shortened(cells.Harmless(strings.Map(inXML, text)))
			}
			if code.MatchString(text) {
				text = strings.ReplaceAll(text, "_x", "_x005F_x")
			}
			_ = xml.EscapeText(&s.line, []byte(text)) // writing to a buffer never fails
			s.line.WriteString("</t></is></c>")
		}
	}
	s.line.WriteString("</row>\n")
	_, err := s.line.WriteTo(s.to)
	return err
}

func (s *sheet) close() error {
	if _, err := io.WriteString(s.to, "</sheetData></worksheet>"); err != nil {
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
