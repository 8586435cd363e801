package bulk

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"

	"asset-registry/assetsvc"
	"asset-registry/deploy/registry/bulk/sheet"
	"asset-registry/shared/cells"
	"asset-registry/shared/testing/expect"
)

// rules is a mapping whose rows need a reference, a title and a quantity.
const rules = `version: 1
delimiter: ";"
decimal: ","
dates: DD.MM.YYYY
reference: Лот
prefix: 2026/
columns:
  Лот: decisions.0.decisionID
  Назва: title
  Площа: items.0.quantity
  Рішення: decisions.0.decisionDate
  Файл: documents.0.file
  Примітка: ""
constants:
  assetType: bounce
  description: Нежитлове приміщення
  items.0.description: Приміщення
  items.0.classification.scheme: CAV-PS
  items.0.classification.id: 06111000-3
  items.0.classification.description: Земля
  items.0.unit.code: MTK
  items.0.address.countryName: Україна
  items.0.registrationDetails.status: unknown
  assetCustodian.name: Фонд
  assetCustodian.identifier.scheme: UA-EDR
  assetCustodian.identifier.id: "00032945"
  assetCustodian.address.countryName: Україна
  assetCustodian.contactPoint.name: Олена
  assetCustodian.contactPoint.email: olena@example.ua
  documents.0.documentType: notice
`

const header = "Лот;Назва;Площа;Рішення;Файл;Примітка\n"

func mapping(t testing.TB, text string) Mapping {
	t.Helper()
	m, faults := ReadMapping(strings.NewReader(text))
	expect.FatalIf(t, len(faults) > 0, "got %v, want a mapping without faults", faults)
	return m
}

// check returns the findings in a file, one line for each. Each must have a text in Ukrainian.
func check(t testing.TB, s Source, files *Folder) (Checked, []string) {
	t.Helper()
	return findings(t, s, files, func(f Finding) {
		expect.ErrorIf(t, f.Level != Skipped && In("uk", f.Text) == f.Text, "got %q in Ukrainian too", f.Text)
	})
}

// findings returns the findings in a file, one line for each, and calls the function `each` with them.
func findings(t testing.TB, s Source, files *Folder, each func(Finding)) (Checked, []string) {
	t.Helper()
	var got []string
	faults := 0
	checked, ok, err := Check(s, files, func(f Finding) {
		got = append(got, f.String())
		each(f)
		if f.Level == Refusal {
			faults++
		}
	})
	expect.FatalIf(t, err != nil || ok != (faults == 0), "got %t, %v and %q, want ok if there is no fault", ok, err, got)
	return checked, got
}

// begins checks that each line has the wanted beginning.
func begins(t testing.TB, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("got no line %d, want %q", i+1, want[i])
		case i >= len(want):
			t.Errorf("got the line %q, want no more lines", got[i])
		case !strings.HasPrefix(got[i], want[i]):
			t.Errorf("got the line %q, want one that begins with %q", got[i], want[i])
		}
	}
}

// folder returns a folder with a file, a directory, a pipe, and links. Some of the links lead out of the
// folder.
func folder(t testing.TB) *Folder {
	t.Helper()
	dir := t.TempDir()
	outside, inside := filepath.Join(dir, "secret.pdf"), filepath.Join(dir, "files")
	for _, d := range []string{inside, filepath.Join(inside, "dir")} {
		expect.OK(t, os.Mkdir(d, 0o700))
	}
	for _, file := range []string{outside, filepath.Join(inside, "a.pdf"), filepath.Join(inside, "dir", "b.pdf")} {
		expect.OK(t, os.WriteFile(file, []byte("%PDF-"), 0o600))
	}
	for name, to := range map[string]string{"in": "a.pdf", "out": "../secret.pdf", "far": outside, "up": ".."} {
		expect.OK(t, os.Symlink(to, filepath.Join(inside, name)))
	}
	expect.OK(t, syscall.Mkfifo(filepath.Join(inside, "pipe"), 0o600))
	f := expect.Get(OpenFolder(inside))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestExportedTextsDoNotGrow reads texts as exports write them. They must be as before, and the reference as it stands.
// Promises: export-undone
func TestExportedTextsDoNotGrow(t *testing.T) {
	for _, text := range []string{"=1+1", "Склад;=1", "Склад;-гараж\n+підвал\t@а", "＝1", `a;"=1`, "- гараж", "об'єкт", "'так'"} {
		var file bytes.Buffer
		w := csv.NewWriter(&file)
		w.Comma = ';'
		_ = w.WriteAll([][]string{ // it writes to a buffer
			strings.Split(strings.TrimSpace(header), ";"), {"'+A7", cells.Harmless(text), "1", "2026-11-20", "", ""},
		})
		m := mapping(t, rules)
		table, faults, err := Source{File: bytes.NewReader(file.Bytes()), Mapping: &m}.open()
		expect.FatalIf(t, err != nil || len(faults) > 0, "%q: got %v, %v", text, faults, err)
		row, faults, err := table.next()
		if err != nil || len(faults) > 0 || row.Asset["title"] != text || row.Reference != "2026/'+A7" {
			t.Errorf("%q: got %q of %q, %v, %v, want the text of 2026/'+A7", text, row.Asset["title"], row.Reference, faults, err)
		}
	}
}

func TestFaultsOfATable(t *testing.T) {
	files := folder(t)
	m := mapping(t, rules)
	const good = "7;Склад;1 234,5;20.11.2026;a.pdf;x\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"good rows", header + good + "8;Склад;1;2026-11-20;;\n", nil},
		{"the mark of UTF-8, and line ends of Windows", "\ufeff" + strings.ReplaceAll(header+good, "\n", "\r\n"), nil},
		{"columns in another order", "Назва;Лот;Площа;Рішення;Файл;Примітка\nСклад;7;1;20.11.2026;;\n", nil},
		{"a formula is a text", header + "7;=1+2;1;20.11.2026;;=HYPERLINK(0)\n", nil},
		{"a cell of several lines", header + "7;\"a\nb\";1;20.11.2026;;\n8;;1;20.11.2026;;\n",
			[]string{"row 3, Назва: This field is required."}},
		{"an empty file", "", []string{"the file has no header"}},
		{"a header alone", header, []string{"the file has no rows"}},
		{"an unknown column", strings.Replace(header+good, "Примітка", "Інше", 1), []string{
			"row 1, Інше: the mapping does not name this column",
			"row 1, Примітка: the mapping names this column, and the file has no such column"}},
		{"a column twice", strings.Replace(header, "Примітка", "Назва", 1), []string{
			"row 1, Назва: two columns have this name", "row 1, Примітка: the mapping names this column"}},
		{"another delimiter", strings.ReplaceAll(header, ";", ","), []string{
			"row 1, Лот,Назва", "row 1, Лот: ", "row 1, Назва: ", "row 1, Площа: ", "row 1, Примітка: ", "row 1, Рішення: ",
			"row 1, Файл: ", `row 1, the header has one column: perhaps the delimiter is ","`}},
		{"a file of an old Excel", "\xd0\xcf\x11\xe0 ", []string{"the file is an .xls file, or has a password: save it"}},
		{"a damaged workbook", "PK\x03\x04 ", []string{"the file is no XLSX file"}},
		{"all faults of all rows", header + ";;many;1.2;no.pdf;\n7;" + strings.Repeat("я", 5001) + ";1;20.11.2026;;\n", []string{
			`row 2, Площа: "many" is no number with the decimal sign ","`,
			`row 2, reference: the row has no reference: got ""`,
			"row 2, Назва: This field is required.",
			`row 2, Рішення: 1.2 is no date of the form DD.MM.YYYY`,
			"row 2, Лот: This field is required.",
			`row 2, Файл: file "no.pdf": there is no such file`,
			"row 3, Назва: String value is too long"}},
		{"a reference twice", header + good + good, []string{"row 3, reference: row 2 has the same reference"}},
		{"a long reference in Cyrillic", header + strings.Repeat("л", 33) + ";Склад;1;20.11.2026;;\n", []string{"row 2, reference: a reference has at most 200"}},
		{"not UTF-8", header + "7;\xd1\xea\xeb\xe0\xe4;1;20.11.2026;;\n", []string{"row 2, Назва: the text is not UTF-8"}},
		{"U+0000", header + "7;a\x00b;1;20.11.2026;;\n", []string{"row 2, Назва: String value has the character U+0000"}},
		{"a quote that is not closed", header + good + "8;\"Склад;1;20.11.2026;;\n", []string{"row 3, line"}},
		{"a quote in a cell", header + "8;Скл\"ад;1;20.11.2026;;\n" + good, []string{"row 2, line 2, byte"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := check(t, Source{File: strings.NewReader(c.text), Mapping: &m}, files)
			begins(t, got, c.want)
		})
	}
}

// TestTheMappingOfTheDocument reads a row with the mapping from docs/import.md.
func TestTheMappingOfTheDocument(t *testing.T) {
	text := expect.Get(os.ReadFile("../../../docs/import.md"))(t)
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	shown, _, _ := strings.Cut(rest, "```")
	m := mapping(t, shown)
	m.Encoding, m.Header = utf8Encoding, ""
	_, got := check(t, Source{File: strings.NewReader(strings.Replace(header, "Файл", "Умови", 1) + "7;Склад;1 234,5;20.11.2026;;x\n"), Mapping: &m}, nil)
	begins(t, got, []string{`warning: row 2, documents: no file is like "photos/7-*.jpg"`})
}

// TestARowOfATable checks what is sent for a row.
func TestARowOfATable(t *testing.T) {
	m := mapping(t, strings.Replace(rules, "version: 1", "version: 1\nencoding: CP1251", 1))
	text := expect.Get(charmap.Windows1251.NewEncoder().String(header + "7; Склад їжака ;\u00a01 234,50;20.11.2026;a.pdf;\n8;Ґанок;1;;;\n"))(t)
	rows, faults, err := Source{File: strings.NewReader(text), Mapping: &m}.open()
	expect.FatalIf(t, err != nil || len(faults) > 0, "got %v, %v, want a file without faults", faults, err)
	first, _, err := rows.next()
	expect.OK(t, err)
	for path, want := range map[string]string{
		"title": "Склад їжака", "items.0.quantity": "1234.50", "decisions.0.decisionDate": "2026-11-20",
		"decisions.0.decisionID": "7", "assetCustodian.identifier.id": "00032945",
	} {
		expect.Equal[any](t, at(map[string]any(first.Asset), path), want, "%s", path)
	}
	expect.ErrorIf(t, first.Reference != "2026/7" || len(first.Documents) != 1 || first.Documents[0].File != "a.pdf",
		"got the reference %q and the documents %v, want 2026/7 and a.pdf", first.Reference, first.Documents)
	second, _, err := rows.next()
	expect.ErrorIf(t, err != nil || len(second.Documents) != 0 || second.Asset["title"] != "Ґанок",
		"got %v, %v, want no document: no column fills it", second, err)
	if _, _, err := rows.next(); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}

// TestTablesOfOtherPrograms reads one table as three programs wrote it: with a heading over two rows, a hidden row and a
// hidden sheet, a formula, dates, and numbers as numbers and as texts.
func TestTablesOfOtherPrograms(t *testing.T) {
	const mine = "version: 1\nheader: 3\ndecimal: \",\"\ndates: DD.MM.YYYY\nreference: Лот\ncolumns: {Назва: title, Лот: decisions.0.decisionID,\n" +
		"  за документами: items.0.quantity, Рішення: decisions.0.decisionDate, Файл: documents.0.file, Примітка: \"\"}\nconstants:\n"
	_, constants, _ := strings.Cut(rules, "constants:\n")
	m := mapping(t, mine+constants)
	for _, name := range []string{"libreoffice.xlsx", "exceljs.xlsx", "openpyxl.xlsx"} {
		t.Run(name, func(t *testing.T) {
			s := Source{File: bytes.NewReader(expect.Get(os.ReadFile("testdata/" + name))(t)), Mapping: &m}
			rows, faults, err := s.open()
			expect.FatalIf(t, err != nil || len(faults) > 0, "got %v, %v, want a file without faults", faults, err)
			var got, findings []string
			for err == nil {
				var row Row
				row, _, err = rows.next()
				for _, f := range row.found {
					findings = append(findings, f.String())
				}
				if err == nil {
					asset := map[string]any(row.Asset)
					got = append(got, strings.TrimSpace(fmt.Sprintln(row.Number, row.Reference, asset["title"], at(asset, "items.0.quantity"),
						at(asset, "decisions.0.decisionDate"), len(row.Documents))))
				}
			}
			want := []string{"4 101 Склад № 1 0.7777 2019-11-25 1", "5 102 Гараж\nцегляний 36.6 2026-03-01 0", "6 103 Ґанок 1104.5 2020-03-01 0"}
			said := []string{`note: the sheet "Перелік 2026" is read, and not "Архів" (hidden)`, "note: 1 hidden rows are read; the first is row 5"}
			if name == "openpyxl.xlsx" { // it calculates no formula
				want[1] = "5 102 Гараж\nцегляний ? 2026-03-01 0"
				said = slices.Insert(said, 1, "row 5, за документами: the file has no value of this formula: open it in a spreadsheet, and save it")
			}
			if diff := cmp.Diff(append(want, said...), append(got, findings...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for sheet, want := range map[string]string{"1": "the file has no header", "Архів": "the file has no header", "2": "", "3": `the file has no sheet "3": it has`} {
		m.Sheet = sheet
		_, faults, err := Source{File: bytes.NewReader(expect.Get(os.ReadFile("testdata/exceljs.xlsx"))(t)), Mapping: &m}.open()
		if err != nil || want == "" && len(faults) > 0 || want != "" && (len(faults) != 1 || !strings.Contains(faults[0].Text, want)) {
			t.Errorf("sheet %s: got %v, %v, want %q", sheet, faults, err, want)
		}
	}
}

// TestCellsThatArePerhapsMisread reads values that a program has changed before, and values that are rarely meant.
func TestCellsThatArePerhapsMisread(t *testing.T) {
	m := mapping(t, strings.NewReplacer("version: 1", "version: 1\ndigits: 8", "  items.0.unit.code: MTK\n", "",
		"  assetCustodian.identifier.id: \"00032945\"\n", "", "  Назва: title\n", "  Назва: title, title_ru\n", "  Лот: decisions.0.decisionID\n", "  Лот: decisions.0.title\n"+
			"  Код: assetCustodian.identifier.id\n  Одиниця: items.0.unit.code\n  Номер: decisions.0.decisionID\n").Replace(rules))
	const head, good = "Лот;Назва;Площа;Рішення;Файл;Примітка;Код;Одиниця;Номер\n", "7;Склад;1;20.11.2026;;;00032945;MTK;7\n"
	with := func(column int, value string) string {
		cells := strings.Split(strings.TrimSpace(good), ";")
		cells[column] = value
		return head + strings.Join(cells, ";") + "\n"
	}
	const title, area, day, note, code, unit, number = 1, 2, 3, 5, 6, 7, 8
	for _, c := range []struct {
		column      int
		value, want string // "": nothing is said
	}{
		{title, "Склад", ""},
		{title, "#ЗНАЧ!", "warning: row 2, Назва: got \"#ЗНАЧ!\": this is an error of a formula"},
		{title, "####", "warning: row 2, Назва: got"},
		{title, "# 5", ""},
		{title, "#5/А", ""},
		{title, "Хиба", "warning: row 2, Назва: got \"Хиба\": this is a truth value"},
		{number, "1,23E+11", "warning: row 2, Номер: got \"1,23E+11\": a spreadsheet shows a long number so"},
		{number, "12E", ""},
		{title, "Буд?вля", "warning: row 2, Назва: got \"Буд?вля\": a letter or a sign was lost"},
		{title, "Цех 120 м?", "warning: row 2, Назва: got"},
		{title, "Гараж? Ні", ""},
		{note, "#REF!", ""},
		{area, "-4", "warning: row 2, Площа: the quantity is -4"},
		{area, "0", "warning: row 2, Площа: the quantity is 0"},
		{area, "7.250", "row 2, Площа: \"7.250\" is no number with the decimal sign \",\", such as 1 104,5"},
		{area, "1,104.5", "row 2, Площа: \"1,104.5\" is no number"},
		{area, "12 50", "row 2, Площа: \"12 50\" is no number"},
		{area, "2\u202f104\u00a0500,25", ""},
		{day, "7.4.2021", ""},
		{day, "07.04.2021 0:00", ""},
		{day, "7.4.2021 16:05", ""},
		{day, "31.02.2021", "row 2, Рішення: 31.02.2021 is no date of the form DD.MM.YYYY"},
		{day, "4/7/2021", "row 2, Рішення: 4/7/2021 is no date of the form DD.MM.YYYY"},
		{day, "20.11.1926", "warning: row 2, Рішення: the date 1926-11-20 is far away"},
		{day, "20.11.2206", "warning: row 2, Рішення: the date 2206-11-20 is far away"},
		{code, "32945", ""},
		{code, "32946", "warning: row 2, Код: \"32946\" is no code of EDRPOU: it has fewer than 8 digits, and with zeros"},
		{code, "00032946", "warning: row 2, Код: \"00032946\" is no code of EDRPOU: its check digit is wrong"},
		{code, "3112233445", "warning: row 2, Код: \"3112233445\" is no code of EDRPOU: it has ten digits, so it is a person's tax number"},
		{code, "0003294O", "warning: row 2, Код: \"0003294O\" is no code of EDRPOU: a code is 8 digits, and nothing else"},
		{code, "", "row 2, Код: This field is required."},
		{code, "0", "warning: row 2, Код: \"0\" is no code of EDRPOU: it has fewer than 8 digits, and with zeros"},
		{code, "00000000", "warning: row 2, Код: \"00000000\" is no code of EDRPOU: it has zeros only"},
		{unit, "MTR", "warning: row 2, Одиниця: no search counts the unit \"MTR\""},
		{unit, "HAR", ""},
	} {
		t.Run(c.value, func(t *testing.T) {
			checked, got := check(t, Source{File: strings.NewReader(with(c.column, c.value)), Mapping: &m}, nil)
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			begins(t, got, want)
			expect.Equal(t, checked.Warnings, strings.Count(c.want, "warning: "), "warnings")
		})
	}
	_, got := check(t, Source{File: strings.NewReader(head + good + strings.Replace(good, "7;", "8;", 1) + strings.Replace(good, "Склад", "Цех", 1)), Mapping: &m}, nil)
	begins(t, got, []string{"warning: row 3, row 2 has the same values under another reference", "row 4, reference: row 2 has the same reference"})
	m.Constants["assetCustodian.identifier.id"], m.Digits = "32945", ""
	m.Columns["Код"] = ""
	_, got = check(t, Source{File: strings.NewReader(head + good + strings.Replace(good, "7;Склад", "8;Цех", 1)), Mapping: &m}, nil)
	begins(t, got, []string{"warning: constant assetCustodian.identifier.id: \"32945\" is no code of EDRPOU: it has fewer than 8 digits: a spreadsheet drops"})
}

// TestColumnsByTheirLetters reads a table with two columns of the same heading, and a constant date of the mapping's form.
func TestColumnsByTheirLetters(t *testing.T) {
	m := mapping(t, strings.NewReplacer("  Примітка: \"\"\n", "  column F: items.0.address.locality\n",
		"  Рішення: decisions.0.decisionDate\n", "  Рішення: \"\"\n",
		"constants:\n", "constants:\n  decisions.0.decisionDate: 20.11.2026\n").Replace(rules))
	text := strings.Replace(header, "Примітка", "Назва", 1) + "7;Склад;1;;;Київ\n"
	_, got := check(t, Source{File: strings.NewReader(text), Mapping: &m}, nil)
	begins(t, got, nil)
}

// TestKindsThatArePerhapsMisread reads cells whose kinds a file tells.
func TestKindsThatArePerhapsMisread(t *testing.T) {
	for _, c := range []struct {
		field string
		cell  sheet.Cell
		want  string
	}{
		{"title", sheet.Cell{Text: "TRUE", Kind: sheet.Truth}, "a truth value"},
		{"title", sheet.Cell{Text: "TRUE", Kind: sheet.Text}, ""},
		{"title", sheet.Cell{Text: "#N/A", Kind: sheet.Failed}, "an error of a formula"},
		{"title", sheet.Cell{Text: "#N/A", Kind: sheet.Text}, ""},
		{"title", sheet.Cell{Text: "4,38E+06", Kind: sheet.Text}, "its digits are lost"},
		{"decisionID", sheet.Cell{Text: "2026-05-12", Kind: sheet.Date}, "the cell is a date"},
		{"decisionDate", sheet.Cell{Text: "2026-05-12", Kind: sheet.Date}, ""},
		{"id", sheet.Cell{Text: "1234567890123450", Kind: sheet.Number}, ""},
		{"id", sheet.Cell{Text: "1234567890123456", Kind: sheet.Number}, "15 digits"},
	} {
		if got := doubt(c.field, c.cell); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s, %v: got %q, want %q", c.field, c.cell, got, c.want)
		}
	}
}

// TestCodesOfEDRPOU has codes of offices that publish theirs.
func TestCodesOfEDRPOU(t *testing.T) {
	for code, want := range map[string]bool{
		"00032945": true, "00032112": true, "21560045": true, "14360570": true, "20077720": true, "40075815": true, "37508596": true,
		"00032954": false, "14360571": false, "40075816": false, "4007581": false, "400758150": false, "4007581x": false, "": false,
	} {
		expect.Equal(t, isCode(code), want, "%s", code)
	}
}

// The function `at` returns the value at a path of an object.
func at(value any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			value = v[0]
		}
	}
	return value
}

func TestFaultsOfAMapping(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"mapping: version must be", "mapping: reference must name"}},
		{"no YAML", ":\n\t-", []string{"the mapping is not YAML"}},
		{"an unknown setting", "version: 1\nreference: a\npage: 2\n", []string{"the mapping is not YAML of the known fields"}},
		{"wrong values", "version: 2\ndelimiter: x\nencoding: koi8\ndecimal: 1\ndates: MM/DD\nreference: a", []string{
			"mapping: version", "mapping: delimiter", "mapping: encoding", "mapping: decimal", "mapping: dates"}},
		{"paths that do not fit", "version: 1\nreference: a\ncolumns: {a: items.0, b: items.0.quantity, c: items.x, d: a..b, e: title, f: title}\n",
			[]string{"b: the path \"items.0.quantity\" does not fit", "c: the path \"items.x\" does not fit",
				"d: the path \"a..b\" has an empty step", "f: the path \"title\" is there twice"}},
		{"a list with a gap", "version: 1\nreference: a\ncolumns: {a: items.1.quantity}\n", []string{"mapping: the list items begins at 0"}},
		{"a long list", "version: 1\nreference: a\ncolumns: {a: items.1000000000.quantity}\n", []string{"a: the path \"items.1000000000.quantity\" names element"}},
		{"a deep path", "version: 1\nreference: a\ncolumns: {a: " + strings.Repeat("a.", 20) + "b}\n", []string{"a: the path"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, faults := ReadMapping(strings.NewReader(c.text))
			var got []string
			for _, f := range faults {
				got = append(got, f.String())
			}
			begins(t, got, c.want)
		})
	}
}

func TestAnUnknownFieldOfAMapping(t *testing.T) {
	m := mapping(t, strings.Replace(rules, "items.0.unit.code", "items.0.unit.kode", 1)+"  documents.0.typ: x\n")
	_, got := check(t, Source{File: strings.NewReader(header + "7;Склад;1;20.11.2026;;\n"), Mapping: &m}, nil)
	begins(t, got, []string{
		"constant items.0.unit.kode: the mapping names a field that does not exist. Rogue field: the nearest is 'code'",
		"constant documents.0.typ: the mapping names a field that does not exist",
	})
}

func TestFaultsOfLines(t *testing.T) {
	files := folder(t)
	const asset = `{"assetType":"bounce","title":"Склад","description":"Цех","items":[{"description":"Цех",
		"classification":{"id":"06111000-3","description":"Земля"},"unit":{"code":"MTK"},"quantity":1.50,
		"address":{"countryName":"Україна"},"registrationDetails":{}}],"decisions":[{"decisionDate":"2026-11-20","decisionID":"7"}],
		"assetCustodian":{"name":"Фонд","identifier":{"scheme":"UA-EDR","id":"1"},"address":{"countryName":"Україна"},
		"contactPoint":{"name":"Олена","email":"a@b.ua"}}}`
	line := func(reference, more string) string {
		return fmt.Sprintf(`{"reference":%q,"data":%s%s}`, reference, strings.Join(strings.Fields(asset), " "), more) + "\n"
	}
	notice := func(file string) string {
		return fmt.Sprintf(`,"documents":[{"documentType":"notice","file":%q}]`, file)
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"good lines", "\ufeff" + line("1", notice("a.pdf")) + "\n" + line("2", notice("dir/b.pdf")) + strings.TrimSpace(line("3", notice("in"))), nil},
		{"nothing", "\n\n", []string{"the file has no rows"}},
		{"no JSON", "x\n" + line("1", "") + "{\n[]\n1 2\n", []string{
			"row 1, the line is not JSON", "row 3, the line is not JSON: it breaks off", "row 4, the line must not be a array", "row 5, the line must not be a number"}},
		{"unknown members and types", `{"ref":1}` + "\n" + `{"reference":1}` + "\n" + `{"reference":"1"}` + "\n" + `{"data":[]}` + "\n", []string{
			`row 1, ref: a line has reference, data`, "row 2, reference must not be a number", "row 3, data: the line has no asset",
			"row 4, data: the line must not be a array"}},
		{"paths that leave the folder", line("1", notice("../secret.pdf")) + line("2", notice("/etc/passwd")) + line("3", notice("out")) +
			line("4", notice("far")) + line("5", notice(`..\secret.pdf`)) + line("6", notice(`C:\a.pdf`)) + line("7", notice("up/secret.pdf")) +
			line("8", notice("dir/../a.pdf")) + line("9", notice("pipe")) + line("10", notice("dir")) + line("11", notice("a.pdf/x")) +
			line("12", notice("a.pdf:stream")) + line("13", notice(`\\server\share`)) + line("14", notice("a\x00b")),
			[]string{"row 1, documents.0.file: file \"../secret.pdf\": a path is relative", "row 2, documents.0.file: file", "row 3, documents.0.file: file \"out\": path escapes",
				"row 4, documents.0.file: file \"far\": path escapes", "row 5, documents.0.file: file", "row 6, documents.0.file: file",
				"row 7, documents.0.file: file \"up/secret.pdf\": path escapes", "row 8, documents.0.file: file", "row 9, documents.0.file: file \"pipe\": this is not a file",
				"row 10, documents.0.file: file \"dir\": this is not a file", "row 11, documents.0.file: file", "row 12, documents.0.file: file",
				"row 13, documents.0.file: file", "row 14, "}},
		{"faults of documents", line("1", `,"documents":[{"file":"a.pdf","url":"https://a.ua/b"},{"documentType":"notice","title":"a","x":1}]`), []string{
			"row 1, documents.0.url: a document has either a file or this field", "row 1, documents.0.documentType: This field is required",
			"row 1, documents.1.x: Rogue field"}},
		{"a document twice", line("1", `,"documents":[{"file":"a.pdf","documentType":"notice"},{"file":"a.pdf","documentType":"notice"}]`),
			[]string{"row 1, documents.1: the row has two documents with this file"}},
		{"a name twice", strings.Replace(line("1", ""), `"title"`, `"title":"x","title"`, 1) +
			line("2", `,"reference":"3"`) + line("4", `,"Reference":"5"`) + line("6", `,"documents":[{"file":"a.pdf","file":"in"}]`) +
			line("7", `,"documents":[{"title":{"a":1,"\u0061":1}}]`),
			[]string{"row 1, title: This field is sent more", "row 2, reference: This field", "row 3, Reference: a line has",
				"row 4, documents.0.file: This field", "row 5, documents.0.title.a: This field"}},
		{"a long line", `{"reference":"` + strings.Repeat("x", maxRow) + `"}`, []string{"row 1, a row has more than"}},
		{"an asset that no request has room for", strings.Replace(line("1", ""), "Цех", strings.Repeat("x", maxBody), 1),
			[]string{"row 1, description: String value is too long", "row 1, the asset has"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := check(t, Source{File: strings.NewReader(c.text), Mapping: nil}, files)
			begins(t, got, c.want)
		})
	}
}

// TestHostileTables reads files whose rows never end. Reading must stop at the limit of a row.
func TestHostileTables(t *testing.T) {
	m := mapping(t, rules)
	for _, c := range []struct {
		name string
		text io.Reader
		want string
	}{
		{"a field without an end", io.MultiReader(strings.NewReader(header+`7;"`), endless('x')), "row 2, a row has more than"},
		{"a line without an end", io.MultiReader(strings.NewReader(header), endless('x')), "row 2, a row has more than"},
		{"a billion columns", io.MultiReader(strings.NewReader(header), endless(';')), "row 2, a row has more than"},
		{"many columns", strings.NewReader(header + strings.Repeat(";", maxColumns) + "\n"), "row 2, the row has 1001 columns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := check(t, Source{File: onceSeeker{c.text}, Mapping: &m}, nil)
			expect.FatalIf(t, len(got) != 1, "got %d faults, want one", len(got))
			begins(t, got, []string{c.want})
		})
	}
	_, got := check(t, Source{File: onceSeeker{endless('{')}, Mapping: nil}, nil)
	begins(t, got, []string{"row 1, a row has more than"})
}

// endless is a reader that returns the same byte for ever.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// onceSeeker is a reader whose Seek does nothing. Seek must be called only before the first read. ReadAt finds
// nothing.
type onceSeeker struct{ io.Reader }

func (onceSeeker) Seek(int64, int) (int64, error) { return 0, nil }

func (onceSeeker) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func TestBoundsAreThoseOfTheRegistry(t *testing.T) {
	if diff := cmp.Diff(int64(assetsvc.DefaultMaxBody), int64(maxBody)); diff != "" {
		t.Errorf("the largest body differs (-registry +import):\n%s", diff)
	}
}

// FuzzCheck checks arbitrary files. Check must not fail, and must give the same result twice.
func FuzzCheck(f *testing.F) {
	tables := []*Mapping{nil}
	for _, change := range [][2]string{{"", ""}, {`delimiter: ";"`, `delimiter: tab`}, {"version: 1", "version: 1\nencoding: cp1251"}} {
		m := mapping(f, strings.Replace(rules, change[0], change[1], 1))
		tables = append(tables, &m)
	}
	f.Add(0, []byte(`{"reference":"1","data":{"title":"x"},"documents":[{"file":"a.pdf"}]}`))
	f.Add(1, []byte(header+"7;Склад;1 234,5;20.11.2026;a.pdf;\"x\ny\"\n"))
	f.Add(2, []byte(strings.ReplaceAll(header+"7;Склад;1;20.11.2026;;\n", ";", "\t")))
	f.Add(3, []byte(header+"\x98;\"\"\n"))
	f.Fuzz(func(t *testing.T, table int, text []byte) {
		s := Source{File: strings.NewReader(string(text)), Mapping: tables[((table%len(tables))+len(tables))%len(tables)]}
		first, faults := findings(t, s, nil, func(Finding) {})
		again, same := findings(t, s, nil, func(Finding) {})
		if diff := cmp.Diff(faults, same); diff != "" || first.Rows != again.Rows {
			t.Errorf("got %d rows, then %d; the faults differ (-first +second):\n%s", first.Rows, again.Rows, diff)
		}
		if len(faults) == 0 && first.Rows == 0 {
			t.Error("got neither rows nor faults, want one of both")
		}
	})
}

func TestMessagesInUkrainian(t *testing.T) {
	for said, want := range map[string]string{
		"row 7":                             "рядок 7",
		`"a: b" becomes "c becomes d"`:      `"a: b" стане "c becomes d"`,
		"This field is required. (asset A)": "Це поле обов'язкове. (об'єкт A)",
		"3 rows are not done":               "не виконано рядків: 3",
		"unheard of":                        "unheard of",
		"file \"а.pdf\": there is no such file in the folder": "файл \"а.pdf\": у папці немає такого файлу",
	} {
		expect.Equal(t, In("uk", said), want, "%s", said)
		expect.Equal(t, In("en", said), said, "English")
	}
	for _, p := range phrases() {
		expect.ErrorIf(t, p.form.NumSubexp() < strings.Count(p.text, "{}"), "%v: got more values in %q", p.form, p.text)
	}
}

// TestABaseKnowsWhatWasSent reads rows of lists. A list is the one of before if the elements that the row fills begin
// alike.
func TestABaseKnowsWhatWasSent(t *testing.T) {
	row := func(names ...string) Row {
		return Row{asset: []byte(`{"items":[{"quantity":"5"}],"title":"a"}`), cleared: []string{"description"},
			lists: map[string][]string{"items": names}}
	}
	sent := row("1", "2").base()
	if !sent.has("items.0.quantity", "5") || !sent.has("description", nil) || sent.has("title", "b") || sent.has("items.0", "5") {
		t.Error("got other values, want those that were sent")
	}
	for _, c := range []struct {
		of    base
		names []string
		want  bool
	}{
		{sent, []string{"1", "2"}, true}, {sent, []string{"1", "2", "4"}, true}, {sent, []string{"1"}, true},
		{sent, []string{"0", "1"}, false}, {sent, []string{"2"}, false},
		{"", []string{"0", "1"}, true}, {"", []string{"1"}, false},
	} {
		expect.Equal(t, c.of.aligns("items", c.names), c.want, "%v", c.names)
	}
}

func TestAChangeOfTwoFieldsOfAColumnIsToldOnce(t *testing.T) {
	w := work{row: Row{Number: 4}}
	for _, value := range []string{"Цех", "Цех", "Склад"} {
		w.change("Назва", "%q becomes %q", "Гараж", value)
	}
	want := []Fault{{4, "Назва", `"Гараж" becomes "Цех"`}, {4, "Назва", `"Гараж" becomes "Склад"`}}
	expect.NoDiff(t, cmp.Diff(want, w.plan.changes), "the changes differ")
}
