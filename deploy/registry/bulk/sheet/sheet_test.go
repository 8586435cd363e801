package sheet

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// parts are the parts of a file with one sheet; a test adds others, or replaces them.
func parts(sheet string) map[string]string {
	const relationships = `<Relationships><Relationship Id="r1" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>`
	return map[string]string{
		"_rels/.rels":     relationships,
		"xl/workbook.xml": `<workbook><workbookPr/><sheets><sheet name="Лоти" sheetId="1" r:id="r1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/a.xml"/>
			<Relationship Id="r2" Type="x/sharedStrings" Target="/xl/texts.xml"/>
			<Relationship Id="r3" Type="x/styles" Target="styles.xml"/></Relationships>`,
		"xl/texts.xml": `<sst><si><t>Назва</t></si><si><r><t>а</t></r><r><t xml:space="preserve"> б_x000A_в</t></r><rPh><t>!</t></rPh></si></sst>`,
		"xl/styles.xml": `<styleSheet><numFmts><numFmt numFmtId="170" formatCode="dd\.mm\.yyyy"/>
			<numFmt numFmtId="171" formatCode="#,##0.00\ &quot;днів&quot;;[Red]-0 \d"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
			<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="22"/></cellXfs></styleSheet>`,
		"xl/worksheets/a.xml": `<worksheet><dimension ref="A1"/><sheetData>` + sheet + `</sheetData></worksheet>`,
	}
}

// file returns a ZIP file with the parts. A part that ends in *N is repeated N times.
func file(t testing.TB, parts map[string]string) *bytes.Reader {
	t.Helper()
	var to bytes.Buffer
	archive := zip.NewWriter(&to)
	for name, text := range parts {
		w := expect.Get(archive.Create(name))(t)
		_ = expect.Get(io.WriteString(w, text))(t)
	}
	expect.OK(t, archive.Close())
	return bytes.NewReader(to.Bytes())
}

// read returns the rows of the first sheet, one text for each.
func read(file *bytes.Reader) (rows []string, err error) {
	b, err := Open(file, file.Size())
	if err != nil {
		return nil, err
	}
	in, err := b.Rows(b.Sheets[0])
	if err != nil {
		return nil, err
	}
	defer in.Close()
	for {
		row, err := in.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, fmt.Sprint(row.Number, row.Hidden, row.Cells))
	}
}

func TestValuesOfCells(t *testing.T) {
	for _, c := range []struct{ name, row, want string }{
		{"shared texts", `<c t="s"><v>0</v></c><c t="s"><v>1</v></c>`, "[{Назва 1} {а б\nв 1}]"},
		{"texts in the cell", `<c r="B1" t="inlineStr"><is><t>_x0031_</t></is></c><c t="str"><f>A1</f><v>x</v></c>`, "[{ 1} {1 1} {x 1}]"},
		{"numbers", `<c><v>0.77769999999999995</v></c><c><v>0.30000000000000004</v></c><c s="2"><v>-1.5E-3</v></c><c><v>4380000</v></c><c><v>-0</v></c>`,
			"[{0.7777 2} {0.3 2} {-0.0015 2} {4380000 2} {0 2}]"},
		{"dates", `<c s="1"><v>43794</v></c><c s="3"><v>43794.4375</v></c><c s="1"><v>1</v></c><c s="1"><v>59</v></c><c s="1"><v>61</v></c>
			<c t="d"><v>2019-11-25T00:00:00</v></c>`,
			"[{2019-11-25 3} {2019-11-25T10:30:00 3} {1900-01-01 3} {1900-02-28 3} {1900-03-01 3} {2019-11-25 3}]"},
		{"days that no calendar has", `<c s="1"><v>60</v></c><c s="1"><v>-1</v></c><c s="1"><v>3000000</v></c>`, "[{60 5} {-1 5} {3000000 5}]"},
		{"truth values and errors", `<c t="b"><v>1</v></c><c t="b"><v>0</v></c><c t="e"><f>1/0</f><v>#DIV/0!</v></c>`, "[{TRUE 4} {FALSE 4} {#DIV/0! 5}]"},
		{"formulas", `<c><f>1+1</f><v>2</v></c><c><f>1+1</f></c><c><f>A1</f><v></v></c><c t="str"><f>A1</f><v></v></c>`, "[{2 2} { 6} { 6}]"},
		{"cells without values", `<c s="2"/><c><v>1</v></c><c/><c t="s"/><c r="XFD1" s="2"/>`, "its text is not there"},
		{"no values at the end", `<c><v>1</v></c><c r="XFD1" s="2"/>`, "[{1 2}]"},
		{"another prefix", `<x:c t="inlineStr"><x:is><x:t>a</x:t></x:is></x:c>`, "[{a 1}]"},
		{"no number", `<c><v>NaN</v></c>`, "row 1, column A: it has no number"},
		{"a column behind the last", `<c r="XFE1"><v>1</v></c>`, "row 1: a cell stands behind column 16384"},
		{"a text that is not there", `<c t="s"><v>2</v></c>`, "its text is not there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := read(file(t, parts("<row>"+c.row+"</row>")))
			if says := fmt.Sprint(got, err); !strings.Contains(says, c.want) {
				t.Errorf("got %s, want %s", says, c.want)
			}
		})
	}
}

// TestDatesFrom1904 reads the days of a file that a Mac wrote.
func TestDatesFrom1904(t *testing.T) {
	p := parts(`<row r="3" hidden="1"><c s="1"><v>0</v></c><c s="1"><v>42332</v></c></row>`)
	p["xl/workbook.xml"] = strings.Replace(p["xl/workbook.xml"], "<workbookPr/>", `<workbookPr date1904="1"/>`, 1)
	got := expect.Get(read(file(t, p)))(t)
	expect.Equal(t, fmt.Sprint(got), "[3 true [{1904-01-01 3} {2019-11-25 3}]]", "days")
}

// TestHeadings reads a row under a merged heading, beside one, and of merged cells.
func TestHeadings(t *testing.T) {
	p := parts(`<row r="1"><c t="inlineStr"><is><t>№</t></is></c><c t="inlineStr"><is><t>Площа</t></is></c></row>
		<row r="2"><c r="B2"><v>1</v></c><c r="C2"><v>2</v></c><c r="D2"><v>3</v></c></row><row r="3"><c><v>7</v></c></row>`)
	p["xl/worksheets/a.xml"] = strings.Replace(p["xl/worksheets/a.xml"], "</worksheet>",
		`<mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="B1:C1"/><mergeCell ref="D2:E2"/></mergeCells></worksheet>`, 1)
	in := file(t, p)
	b := expect.Get(Open(in, in.Size()))(t)
	for number, want := range map[int][]string{1: {"№", "Площа", "Площа"}, 2: {"№", "1", "2", "3", "3"}, 9: nil} {
		got := expect.Get(b.Headings(b.Sheets[0], number))(t)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("row %d: %s", number, diff)
		}
	}
}

// TestAttacksAreRefused reads files that are large, deep or broken. None of them may take much memory.
func TestAttacksAreRefused(t *testing.T) {
	lower := func(part int64, cells, texts, items int) {
		maxPart, maxCells, maxStrings, maxItems = part, cells, texts, items
	}
	defer lower(maxPart, maxCells, maxStrings, maxItems)
	lower(16<<20, 1_000_000, 4<<20, 100_000)
	const million = 1_000_000
	in := func(part, text string) map[string]string {
		p := parts(`<row><c t="s"><v>0</v></c></row>`)
		p[part] = text
		return p
	}
	names := parts("")
	for i := range 2000 {
		names[fmt.Sprint(strings.Repeat("n", 4000), i)] = ""
	}
	for _, c := range []struct {
		name  string
		parts map[string]string
		want  string // "": the file is read
	}{
		{"a million empty cells", parts("<row>" + strings.Repeat(`<c r="A1"/>`, million) + "</row>"), ""},
		{"a million empty rows", parts(strings.Repeat("<row/>", million)), ""},
		{"more rows than a sheet has", parts(strings.Repeat("<row/>", maxRows+1)), "wrong number"},
		{"more cells than the bound", parts(strings.Repeat("<row>"+strings.Repeat(`<c r="A1"/>`, 10_001)+"</row>", 100)), "too many cells"},
		{"a part that unpacks to much", in("xl/worksheets/a.xml", strings.Repeat("<!-- -->", 3<<20)), "unpacks to more than 16777216 bytes"},
		{"one long text", in("xl/texts.xml", "<sst><si><t>"+strings.Repeat("a", 8<<20)), "a text of more than 1048576 bytes"},
		{"one text of many parts", in("xl/texts.xml", "<sst><si>"+strings.Repeat("<t>a</t>", 1<<18)), "too many bytes in a cell"},
		{"many texts", in("xl/texts.xml", "<sst>"+strings.Repeat("<si><t>"+strings.Repeat("a", 100_000)+"</t></si>", 50)), "too many bytes of texts"},
		{"many empty texts", in("xl/texts.xml", "<sst>"+strings.Repeat("<si/>", maxItems+1)), "too many texts"},
		{"a cell of many texts", parts("<row><c>" + strings.Repeat("<v>1</v>", 1<<18)), "too many bytes in a cell"},
		{"a row of long cells", parts("<row>" + strings.Repeat(`<c t="str"><v>`+strings.Repeat("a", 100_000)+"</v></c>", 30)), "too many bytes in a row"},
		{"a long tag", in("xl/styles.xml", `<styleSheet a="`+strings.Repeat("a", 2<<20)), "a text of more than"},
		{"deep elements", in("xl/styles.xml", strings.Repeat("<a>", 1<<20)), "too many elements in one another"},
		{"an end without a beginning", parts("<row><v>0</c>"), "damaged"},
		{"ends in another order", parts("<row><c><v>0</c></v></row>"), "damaged"},
		{"an entity", in("xl/texts.xml", "<sst><si><t>&a;</t></si></sst>"), "invalid character entity"},
		{"a declared entity", in("xl/texts.xml", `<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><sst><si><t>&b;</t></si></sst>`), "has a document type"},
		{"an entity of a file", in("xl/workbook.xml", `<!DOCTYPE x SYSTEM "file:///etc/passwd"><workbook/>`), "has a document type"},
		{"many parts", names, "bytes of names"},
		{"a row that breaks off", parts("<row><c><v>1"), "damaged"},
		{"a sheet that breaks off", in("xl/worksheets/a.xml", "<worksheet><sheetData><row></row>"), "damaged"},
		{"rows that go back", parts(`<row r="5"/><row r="5"/>`), "wrong number"},
		{"no sheet", in("xl/workbook.xml", "<workbook/>"), "no XLSX file"},
		{"a sheet without its part", in("xl/_rels/workbook.xml.rels", "<Relationships/>"), "no XLSX file"},
		{"a binary workbook", in("xl/workbook.bin", ""), "an .xlsb file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := file(t, c.parts)
			c.parts = nil
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := read(in)
			runtime.ReadMemStats(&after)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 128<<20 {
				t.Errorf("got %d bytes more of heap, want at most 128 MiB", grown)
			}
		})
	}
}

func TestOtherFilesAreNamed(t *testing.T) {
	for begin, want := range map[string]string{
		"\xd0\xcf\x11\xe0\xa1\xb1": "an .xls file, or has a password", "PK\x03\x04mimetypeapplication/vnd.oasis.opendocument.spreadsheet": "an .ods file",
		"%PDF-1.7": "a PDF", "PK\x03\x04[Content_Types].xml": "", "Лот;Назва": "",
	} {
		if got := Named([]byte(begin)); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: got %q, want %q", begin, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`<row r="2"><c r="B2" t="s"><v>1</v></c><c s="1"><v>43794</v></c></row>`)
	f.Fuzz(func(t *testing.T, sheet string) { _, _ = read(file(t, parts(sheet))) })
}
