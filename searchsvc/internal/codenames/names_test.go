package codenames

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"asset-registry/shared/testing/expect"
)

// Excerpts of the Common Procurement Vocabulary, Commission Regulation (EC) No 213/2008, and of its
// Ukrainian form, the classifier ДК 021:2015, as the API of Prozorro publishes them as JSON.
const (
	cpvUk = `{"03000000-1": "Сільськогосподарська, фермерська продукція, продукція рибальства, лісівництва та супутня продукція",
		"03100000-2": "Сільськогосподарська продукція та продукція рослинництва", "03111000-2": "Насіння"}`
	cpvEn = `{"03111000-2": "Seeds", "03111100-3": "Soya beans"}`
)

func writeLists(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range files {
		expect.OK(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	return dir
}

func TestCodesHaveNamesAtEachLevelInBothLanguages(t *testing.T) {
	lists := expect.Get(Read(writeLists(t, map[string]string{
		"CPV.uk.json": cpvUk, "CPV.en.json": cpvEn, "dk018.txt": "\uFEFF# code and name\n1110.1\tБудинки масової забудови\n1110.2\n",
		"CPV.txt": "03111000-2 Зерно\n03111200-4 Арахіс\n", "CAV-PS.uk.json": `{"04121000-2": " Назва\u202e\nкоду "}`,
		"identifier-schemes.txt": "UA-EDR\n",
	})))(t)
	for _, c := range []struct{ scheme, code, uk, en string }{
		{"CPV", "03", "Сільськогосподарська, фермерська продукція, продукція рибальства, лісівництва та супутня продукція",
			"Agricultural, farming, fishing, forestry and related products"}, // the English name is built in
		{"CPV", "031", "Сільськогосподарська продукція та продукція рослинництва",
			"Сільськогосподарська продукція та продукція рослинництва"},
		{"CPV", "0310", "Сільськогосподарська продукція та продукція рослинництва",
			"Сільськогосподарська продукція та продукція рослинництва"},
		{"CPV", "03111000-2", "Насіння", "Seeds"}, // the text file has a different name; the JSON file wins
		{"CPV", "03111000", "Насіння", "Seeds"},
		{"CPV", "03111100-3", "", "Soya beans"},
		{"CPV", "03111200-4", "Арахіс", "Арахіс"},
		{"CPV", "0412", "", ""},
		{"dk018", "1110.1", "Будинки масової забудови", "Будинки масової забудови"},
		{"dk018", "1110.2", "", ""},
		{"dk018", "1110", "", ""},
		{"CAV-PS", "04121000-2", "Назва коду", "Назва коду"},
		{"UA-EDR", "1", "", ""},
	} {
		name := lists.Of(c.scheme, c.code)
		if name.In("uk") != c.uk || name.In("en") != c.en {
			t.Errorf("%s %s: got %q and %q, want %q and %q", c.scheme, c.code, name.In("uk"), name.In("en"), c.uk, c.en)
		}
	}
	for code, want := range map[string]string{"03111000-2": "Насіння", "04121000-2": "Назва коду", "99": ""} {
		expect.Equal(t, lists.Classification(code).Uk, want, "%s", code)
	}
	expect.ErrorIf(t, (Lists{}).Classification("03") != (Name{}), "got a name of no lists, want none")
	var codes []string
	lists.Each("CPV", func(code string, name Name) { codes = append(codes, code+" "+name.In("en")) })
	if want := []string{"03000000-1", "03100000-2", "03111000-2 Seeds", "03111100-3 Soya beans", "03111200-4 Арахіс"}; len(codes) < len(want) ||
		!strings.HasPrefix(codes[0], want[0]) || !slices.Equal(codes[2:len(want)], want[2:]) {
		t.Errorf("got the codes %q, want %q", codes, want)
	}
}

func TestFaultyListsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no JSON", map[string]string{"CPV.uk.json": "03111000-2 Насіння"}, "CPV.uk.json: it must be an object"},
		{"a list", map[string]string{"CPV.uk.json": `["03111000-2"]`}, "it must be an object"},
		{"numbers", map[string]string{"CPV.uk.json": `{"03111000-2": 1}`}, "it must be an object"},
		{"a code that is twice there", map[string]string{"CPV.uk.json": `{"1":"a","1":"b"}`}, "it must be an object"},
		{"a long code", map[string]string{"CPV.uk.json": fmt.Sprintf(`{"%0*d":"x"}`, maxCode+1, 0)}, "is no code"},
		{"an empty code", map[string]string{"CPV.uk.json": `{"": "x"}`}, "is no code"},
		{"no UTF-8", map[string]string{"CPV.txt": "03111000-2 \xff\n"}, "not UTF-8"},
		{"many bytes together", map[string]string{
			"CPV.uk.json": cpvUk, "dk018.txt": "#" + strings.Repeat("x", MaxBytes-len(cpvUk)),
		}, fmt.Sprintf("more than %d bytes together", MaxBytes)},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.SaysOf(t, c.want, "")(Read(writeLists(t, c.files)))
		})
	}
	expect.SaysOf(t, "/none", "a directory that is missing")(Read(filepath.Join(t.TempDir(), "none")))
}

// TestNamesAreBuiltIn reads no lists of an operator. Divisions of CPV must have names in both languages, and codes of
// CAV-PS those of the file. A list of an operator must win.
// Promises: code-names
func TestNamesAreBuiltIn(t *testing.T) {
	lists, err := Read("")
	if err != nil {
		t.Fatal(err)
	}
	divisions := 0
	lists.Each("CPV", func(code string, name Name) {
		if divisions++; !strings.HasSuffix(code[:8], "000000") || name.Uk == "" || name.En == "" || name.Uk == name.En {
			t.Errorf("%s: got %+v, want a division with names in two languages", code, name)
		}
	})
	expect.ErrorIf(t, divisions != 45, "got %d divisions of CPV, want 45", divisions)
	for code, want := range map[string]string{
		"04": "Нерухоме майно", "06": "Земельні ділянки", "07": "Права вимоги за кредитними договорами", "0408": "", "08": "",
		"05100000-6": "Єдині майнові комплекси державних підприємств, їх структурні підрозділи", "03": "Сільськогосподарська, фермерська" +
			" продукція, продукція рибальства, лісівництва та супутня продукція", "08110000-0": "Корпоративні права Акціонерного товариства",
	} {
		expect.Equal(t, lists.Classification(code).Uk, want, "%s", code)
	}
	own, err := Read(writeLists(t, map[string]string{"CAV-PS.uk.json": `{"04000000-8": "Власна назва"}`, "CPV.txt": "16000000-5 Машини\n"}))
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{"04": "Власна назва", "16": "Машини", "06": "Земельні ділянки"} {
		expect.Equal(t, own.Classification(code).Uk, want, "%s with a list of the operator", code)
	}
}

func TestNamesAreShort(t *testing.T) {
	lists, err := Read(writeLists(t, map[string]string{"CPV.txt": "03 " + strings.Repeat("я", MaxName+1) + "\n"}))
	if want := strings.Repeat("я", MaxName) + "…"; err != nil || lists.Of("CPV", "03").Uk != want {
		t.Errorf("got %q, %v, want %q", lists.Of("CPV", "03").Uk, err, want)
	}
}

// TestNamesOfOneCodeDoNotDependOnChance reads a list that has one code in several spellings. The result must be
// the same each time.
func TestNamesOfOneCodeDoNotDependOnChance(t *testing.T) {
	dir := writeLists(t, map[string]string{"CPV.uk.json": `{"03110000-3": "Культури", "0311": "короткий", "03110000": "довший"}`})
	for range 20 {
		lists := expect.Get(Read(dir))(t)
		if got := lists.Of("CPV", "03110000-3").Uk; got != "Культури" {
			t.Fatalf("got the name %q, want the name of the longest code", got)
		}
	}
}

// TestAPipeIsNoList reads a directory with a named pipe that nobody writes to. Read must not wait for it.
func TestAPipeIsNoList(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, syscall.Mkfifo(filepath.Join(dir, "CPV.uk.json"), 0o600))
	expect.SaysOf(t, "this is no file", "")(Read(dir))
}
