package sheet

import (
	"archive/zip"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

const (
	xmlHead       = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	schemas       = "http://schemas.openxmlformats.org/"
	mainSchema    = schemas + "spreadsheetml/2006/main"
	relationships = schemas + "officeDocument/2006/relationships"
	contentType   = "application/vnd.openxmlformats-officedocument.spreadsheetml."
)

// Write writes an XLSX file with one sheet of texts. Its columns have the format of texts, so a spreadsheet keeps the
// zeros that a code begins with.
func Write(to io.Writer, name string, rows [][]string) error {
	var cells strings.Builder
	for number, row := range rows {
		fmt.Fprintf(&cells, `<row r="%d">`, number+1)
		for i, text := range row {
			fmt.Fprintf(&cells, `<c r="%s%d" s="1" t="inlineStr"><is><t>`, Letters(i+1), number+1)
			_ = xml.EscapeText(&cells, []byte(text)) // writing to a Builder never fails
			cells.WriteString("</t></is></c>")
		}
		cells.WriteString("</row>")
	}
	relation := func(id, kind, target string) string {
		return fmt.Sprintf(`<Relationship Id="%s" Type="%s/%s" Target="%s"/>`, id, relationships, kind, target)
	}
	file := zip.NewWriter(to)
	for _, part := range []struct{ name, content string }{
		{"[Content_Types].xml", `<Types xmlns="` + schemas + `package/2006/content-types">` +
			`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Override PartName="/xl/workbook.xml" ContentType="` + contentType + `sheet.main+xml"/>` +
			`<Override PartName="/xl/styles.xml" ContentType="` + contentType + `styles+xml"/>` +
			`<Override PartName="/xl/worksheets/sheet1.xml" ContentType="` + contentType + `worksheet+xml"/></Types>`},
		{"_rels/.rels", `<Relationships xmlns="` + schemas + `package/2006/relationships">` +
			relation("rId1", "officeDocument", "xl/workbook.xml") + `</Relationships>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="` + schemas + `package/2006/relationships">` +
			relation("rId1", "worksheet", "worksheets/sheet1.xml") + relation("rId2", "styles", "styles.xml") +
			`</Relationships>`},
		{"xl/workbook.xml", `<workbook xmlns="` + mainSchema + `" xmlns:r="` + relationships + `"><sheets>` +
			`<sheet name="` + name + `" sheetId="1" r:id="rId1"/></sheets></workbook>`},
		{"xl/styles.xml", `<styleSheet xmlns="` + mainSchema + `">` +
			`<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>` +
			`<fills count="2"><fill><patternFill patternType="none"/></fill>` +
			`<fill><patternFill patternType="gray125"/></fill></fills>` +
			`<borders count="1"><border/></borders><cellStyleXfs count="1"><xf numFmtId="0"/></cellStyleXfs>` +
			`<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="49" applyNumberFormat="1"/></cellXfs></styleSheet>`},
		{"xl/worksheets/sheet1.xml", fmt.Sprintf(`<worksheet xmlns="%s">`+
			`<cols><col min="1" max="%d" width="18" style="1"/></cols><sheetData>%s</sheetData></worksheet>`,
			mainSchema, len(rows[0]), cells.String())},
	} {
		w, err := file.Create(part.name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, xmlHead+part.content); err != nil {
			return err
		}
	}
	return file.Close()
}
