package bulk

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"

	"asset-registry/assetsvc"
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
	if len(faults) > 0 {
		t.Fatalf("got %v, want a mapping without faults", faults)
	}
	return m
}

// check returns the faults of a file, one line for each.
func check(t testing.TB, s Source, files *Folder) (Checked, []string) {
	t.Helper()
	var got []string
	checked, ok, err := Check(s, files, func(f Fault) { got = append(got, f.String()) })
	if err != nil || ok != (len(got) == 0) {
		t.Fatalf("got %t, %v and %q, want ok if there is no fault", ok, err, got)
	}
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
		table, faults, err := newTable(&file, mapping(t, rules))
		if err != nil || len(faults) > 0 {
			t.Fatalf("%q: got %v, %v", text, faults, err)
		}
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
		{"UTF-16", "\xff\xfeA\x00", []string{"the file is UTF-16"}},
		{"all faults of all rows", header + ";;many;1.2;no.pdf;\n7;" + strings.Repeat("я", 5001) + ";1;20.11.2026;;\n", []string{
			`row 2, reference: the row has no reference: got ""`,
			"row 2, Назва: This field is required.",
			"row 2, Площа: Number 'many' failed",
			"row 2, Рішення: Could not parse",
			"row 2, Лот: This field is required.",
			`row 2, Файл: file "no.pdf": there is no such file`,
			"row 3, Назва: String value is too long"}},
		{"a reference twice", header + good + good, []string{"row 3, reference: row 2 has the same reference"}},
		{"a reference in Cyrillic", header + "лот;Склад;1;20.11.2026;;\n", []string{"row 2, reference: a reference has 1 to 200 Latin"}},
		{"too few and too many cells", header + "7;Склад\n" + "8;;;;;;;\n", []string{
			"row 2, the row has 2 columns, and the header 6", "row 3, the row has 8 columns"}},
		{"not UTF-8", header + "7;\xd1\xea\xeb\xe0\xe4;1;20.11.2026;;\n", []string{"row 2, Назва: the text is not UTF-8"}},
		{"U+0000", header + "7;a\x00b;1;20.11.2026;;\n", []string{"row 2, Назва: String value has the character U+0000"}},
		{"a quote that is not closed", header + good + "8;\"Склад;1;20.11.2026;;\n", []string{"row 3, line"}},
		{"a quote in a cell", header + "8;Скл\"ад;1;20.11.2026;;\n" + good, []string{"row 2, line 2, byte"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := check(t, Source{strings.NewReader(c.text), &m}, files)
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
	m.Encoding = utf8Encoding
	_, got := check(t, Source{strings.NewReader(strings.Replace(header, "Файл", "Умови", 1) + "7;Склад;1 234,5;20.11.2026;;x\n"), &m}, nil)
	begins(t, got, nil)
}

// TestARowOfATable checks what is sent for a row.
func TestARowOfATable(t *testing.T) {
	m := mapping(t, strings.Replace(rules, "version: 1", "version: 1\nencoding: CP1251", 1))
	text := expect.Get(charmap.Windows1251.NewEncoder().String(header + "7; Склад їжака ;\u00a01 234,50;20.11.2026;a.pdf;\n8;Ґанок;1;;;\n"))(t)
	rows, faults, err := Source{strings.NewReader(text), &m}.open()
	if err != nil || len(faults) > 0 {
		t.Fatalf("got %v, %v, want a file without faults", faults, err)
	}
	first, _, err := rows.next()
	expect.OK(t, err)
	for path, want := range map[string]string{
		"title": "Склад їжака", "items.0.quantity": "1234.50", "decisions.0.decisionDate": "2026-11-20",
		"decisions.0.decisionID": "7", "assetCustodian.identifier.id": "00032945",
	} {
		if got := at(map[string]any(first.Asset), path); got != want {
			t.Errorf("%s: got %v, want %q", path, got, want)
		}
	}
	if first.Reference != "2026/7" || len(first.Documents) != 1 || first.Documents[0].File != "a.pdf" {
		t.Errorf("got the reference %q and the documents %v, want 2026/7 and a.pdf", first.Reference, first.Documents)
	}
	second, _, err := rows.next()
	if err != nil || len(second.Documents) != 0 || second.Asset["title"] != "Ґанок" {
		t.Errorf("got %v, %v, want no document: no column fills it", second, err)
	}
	if _, _, err := rows.next(); err != io.EOF {
		t.Errorf("got %v, want the end", err)
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
		{"an unknown setting", "version: 1\nreference: a\nsheet: 2\n", []string{"the mapping is not YAML of the known fields"}},
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
	_, got := check(t, Source{strings.NewReader(header + "7;Склад;1;20.11.2026;;\n"), &m}, nil)
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
			_, got := check(t, Source{strings.NewReader(c.text), nil}, files)
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
			_, got := check(t, Source{onceSeeker{c.text}, &m}, nil)
			if len(got) != 1 {
				t.Fatalf("got %d faults, want one", len(got))
			}
			begins(t, got, []string{c.want})
		})
	}
	_, got := check(t, Source{onceSeeker{endless('{')}, nil}, nil)
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

// onceSeeker is a reader whose Seek does nothing. Seek must be called only before the first read.
type onceSeeker struct{ io.Reader }

func (onceSeeker) Seek(int64, int) (int64, error) { return 0, nil }

func TestBoundsAreThoseOfTheRegistry(t *testing.T) {
	if diff := cmp.Diff(int64(assetsvc.DefaultMaxBody), int64(maxBody)); diff != "" {
		t.Errorf("the largest body differs (-registry +import):\n%s", diff)
	}
}

// FuzzCheck checks arbitrary files. Check must not fail, and must give the same result twice.
func FuzzCheck(f *testing.F) {
	tables := []*Mapping{nil}
	for _, change := range [][2]string{{"", ""}, {`delimiter: ";"`, `delimiter: ","`}, {"version: 1", "version: 1\nencoding: cp1251"}} {
		m := mapping(f, strings.Replace(rules, change[0], change[1], 1))
		tables = append(tables, &m)
	}
	f.Add(0, []byte(`{"reference":"1","data":{"title":"x"},"documents":[{"file":"a.pdf"}]}`))
	f.Add(1, []byte(header+"7;Склад;1 234,5;20.11.2026;a.pdf;\"x\ny\"\n"))
	f.Add(2, []byte(strings.ReplaceAll(header+"7;Склад;1;;;\n", ";", ",")))
	f.Add(3, []byte(header+"\x98;\"\"\n"))
	f.Fuzz(func(t *testing.T, table int, text []byte) {
		s := Source{strings.NewReader(string(text)), tables[((table%len(tables))+len(tables))%len(tables)]}
		first, faults := check(t, s, nil)
		again, same := check(t, s, nil)
		if diff := cmp.Diff(faults, same); diff != "" || first.Rows != again.Rows {
			t.Errorf("got %d rows, then %d; the faults differ (-first +second):\n%s", first.Rows, again.Rows, diff)
		}
		if len(faults) == 0 && first.Rows == 0 {
			t.Error("got neither rows nor faults, want one of both")
		}
	})
}
