package bulk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"asset-registry/shared/testing/expect"
)

// TestTablesAsOfficesLeaveThem reads rows, columns and cells that no program has written for another one.
func TestTablesAsOfficesLeaveThem(t *testing.T) {
	files := folder(t)
	m := mapping(t, rules+"  items.0.address.region: Львівська область\nskip: [Всього по, «Склав», \"*\"]\n")
	const good = "7;Склад;1 234,5;20.11.2026;a.pdf;x\n"
	wide := func(text string) string { return strings.ReplaceAll(text, "\n", ";;\n") }
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty rows and columns", wide(header + good + ";;;;;\n\n ;\u00a0;;;;\n8;Склад;2;20.11.2026\n"), nil},
		{"a group, a total and a signature", header + "Львів;;;;;\n" + good + ";Всього  по\u00a0району;1 234,5;;;\n;;;;;М. П.\n;\"\"\"Склав\"\" Ніна\";;;;\n", []string{
			`skipped: row 2, "Львів"`, `skipped: row 4, "Всього по району"`, `skipped: row 5, "М. П."`, `skipped: row 6, "\"Склав\" Ніна"`}},
		{"a reference that begins like a word to skip", header + "Склавська;Склад;1;20.11.2026;;\nСклав2;Цех;2;20.11.2026;;\n", nil},
		{"a row with a file alone", header + good + "9;;;;a.pdf;\n", []string{"row 3, Назва: This", "row 3, Рішення: This"}},
		{"a value without a heading", wide(header) + "7;Склад;1;20.11.2026;;;;5\n8;Цех;1;20.11.2026;;;;;6\n", []string{
			"row 2, column H: the column has no heading, and this cell has a value", "row 3, column I: the column has no heading"}},
		{"headings in other forms", strings.NewReplacer("Рішення", "\"Рішен-\nня \"\"№\"\"\"", "Файл", "Пам’ятка").Replace(header) + good, []string{
			`row 1, Рішен- ня "№": the mapping does not name`, `row 1, Пам'ятка: the mapping does not name`,
			"row 1, Рішення: the mapping names this column", "row 1, Файл: the mapping names this column"}},
		{"decomposed headings and files", norm.NFD.String(header + strings.Replace(good, "a.pdf", "їжак.pdf", 1)), nil},
		{"UTF-16 with tabs", utf16(t, strings.ReplaceAll(header+good, ";", "\t")), nil},
		{"commas", strings.ReplaceAll(header+strings.Replace(good, "1 234,5", "1234", 1), ";", ","), nil},
		{"blanks that nobody sees", strings.ReplaceAll(header+good, ";", "\u200b;\u00a0"), nil},
		{"totals by the word *", header + good + "УСЬОГО:;;1 234,5;;;2\nПідсумок за рік;;;;;\nСумар;;5;;;\nРазом;Склад;5;;;\nСума;;5;;a.pdf;\n", []string{
			`skipped: row 3, "УСЬОГО:"`, `skipped: row 4, "Підсумок за рік"`, "row 5, Назва:", "row 5, Рішення:", "row 6, Рішення:", "row 7, Назва:", "row 7, Рішення:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := m
			m.Delimiter = ""
			expect.OK(t, files.root.WriteFile("їжак.pdf", []byte("%PDF-"), 0o600))
			checked, got := check(t, Source{File: strings.NewReader(c.text), Mapping: &m}, files)
			begins(t, got, c.want)
			expect.Equal(t, checked.Skipped, strings.Count(strings.Join(c.want, "\n"), "skipped: "), "skipped rows")
		})
	}
}

func utf16(t *testing.T, text string) string {
	t.Helper()
	return expect.Get(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text))(t)
}

// TestTextsAreComposed reads a title and a reference that a Mac wrote.
func TestTextsAreComposed(t *testing.T) {
	m := mapping(t, rules)
	s := Source{File: strings.NewReader(norm.NFD.String(header + "Ґ-1;Її йорж;1;20.11.2026;;\n")), Mapping: &m}
	rows, faults, err := s.open()
	expect.FatalIf(t, err != nil || len(faults) > 0, "got %v, %v, want a file without faults", faults, err)
	row, _, err := rows.next()
	if err != nil || row.Asset["title"] != "Її йорж" || row.Reference != "2026/%D2%90-1" {
		t.Errorf("got %q of %q, %v, want composed texts", row.Asset["title"], row.Reference, err)
	}
}

// TestFilesOfARow reads a cell of several files, a pattern with the text of a column, and a column of two fields.
func TestFilesOfARow(t *testing.T) {
	files := folder(t)
	for _, name := range []string{"№ 7*-2.jpg", "№ 7*-1.jpg", "№ 7-3.jpg", "№ 77*-1.jpg"} {
		expect.OK(t, files.root.WriteFile("dir/"+name, []byte("x"), 0o600))
	}
	m := mapping(t, strings.NewReplacer("delimiter: \";\"", "files: \";\"", "Назва: title", "Назва: title, items.0.description",
		"  items.0.description: Приміщення\n", "").Replace(rules)+
		"  documents.1.documentType: illustration\n  documents.1.file: \"dir/{ Лот }-*.jpg\"\n")
	text := strings.ReplaceAll(header, ";", "\t") + "№ 7*\tСклад\t1\t20.11.2026\ta.pdf; dir/b.pdf;\t\n№ 8\tЦех\t1\t20.11.2026\t\t\n"
	s := Source{File: strings.NewReader(text), Mapping: &m}
	_, got := check(t, s, files)
	begins(t, got, []string{`warning: row 3, documents: no file is like "dir/№ 8-*.jpg"`})
	s.files = files
	rows, _, err := s.open()
	expect.OK(t, err)
	row, _, err := rows.next()
	expect.OK(t, err)
	var names []string
	for _, d := range row.Documents {
		names = append(names, d.File)
	}
	expect.Equal(t, strings.Join(names, ","), "a.pdf,dir/b.pdf,dir/№ 7*-1.jpg,dir/№ 7*-2.jpg", "files")
	expect.Equal(t, at(map[string]any(row.Asset), "items.0.description"), any("Склад"), "description")
}

// TestFaultsNameTheColumnOfTheCell has cells of several files, and cells without a value before one with a fault. Each
// fault must name the column of its cell.
func TestFaultsNameTheColumnOfTheCell(t *testing.T) {
	m := mapping(t, strings.NewReplacer("delimiter: \";\"", "files: \";\"", "  Файл: documents.0.file\n  Примітка: \"\"\n",
		"  Фото: documents.0.file\n  Док: documents.1.file\n  Кількість: items.1.quantity\n").Replace(rules)+
		"  documents.1.documentType: notice\n  items.1.description: Земля\n")
	text := strings.ReplaceAll("Лот;Назва;Площа;Рішення;Фото;Док;Кількість\n", ";", "\t") +
		"1\tСклад\t1\t20.11.2026\tnone1.jpg; none2.jpg\tnone3.pdf\t\n" +
		"2\tСклад\t1\t20.11.2026\t\tnone4.pdf; none5.pdf\t\n"
	_, got := check(t, Source{File: strings.NewReader(text), Mapping: &m}, folder(t))
	begins(t, got, []string{
		`row 2, Фото: file "none1.jpg"`, `row 2, Фото: file "none2.jpg"`, `row 2, Док: file "none3.pdf"`,
		`row 3, Док: file "none4.pdf"`, `row 3, Док: file "none5.pdf"`,
	})
}

// TestFilesOfEachNormalForm asks for a file whose name the folder has in another form.
func TestFilesOfEachNormalForm(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.Mkdir(filepath.Join(dir, norm.NFD.String("Київ")), 0o700))
	for _, name := range []string{norm.NFD.String("Київ/край.pdf"), "йод.pdf"} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	f := expect.Get(OpenFolder(dir))(t)
	defer f.Close()
	for _, name := range []string{"Київ/край.pdf", norm.NFD.String("Київ/край.pdf"), "йод.pdf", norm.NFD.String("йод.pdf")} {
		expect.OK(t, f.check(name))
		expect.OK(t, expect.Get(f.Open(name))(t).Close())
	}
	expect.Fails(t, f.check("краї.pdf"), "a file that is not there")
}

// TestReferencesOfOffices writes references as the registry takes them. Those that it takes stay as they are.
func TestReferencesOfOffices(t *testing.T) {
	for text, want := range map[string]string{
		"Лот-1": "%D0%9B%D0%BE%D1%82-1", " № 12/К ": "%E2%84%96%2012/%D0%9A", "№\u00a012/К": "%E2%84%96%2012/%D0%9A", "5 %": "5%20%25",
		"2026/7": "2026/7", "100%": "100%", "%D0%9B": "%D0%9B", "": "", norm.NFD.String("й"): "%D0%B9", "²": "%C2%B2",
	} {
		expect.Equal(t, WriteReference(text), want, "%q", text)
	}
	rapid.Check(t, func(t *rapid.T) {
		legal := rapid.StringMatching(`[!-~]{0,200}`).Draw(t, "legal")
		if got := WriteReference(legal); got != legal {
			t.Errorf("got %q, want %q", got, legal)
		}
		text := strings.Join(strings.Fields(tidy(rapid.String().Draw(t, "text"))), " ")
		written := WriteReference(text)
		if strings.TrimFunc(written, isVisible) != "" || WriteReference(written) != written {
			t.Errorf("%q: got %q, want visible ASCII", text, written)
		}
		if got := ReadReference(written); got != text && strings.TrimFunc(text, isVisible) != "" {
			t.Errorf("%q: got %q from %q", text, got, written)
		}
	})
}
