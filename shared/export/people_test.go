package export

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// estate has three items in two regions. Its title is a formula, its code and its number begin with zeros.
const estate = `{"id":"a1","assetID":"UA-1","assetType":"bounce","status":"verification","title":"=1+1;\"x\"","title_en":"House",
	"dateModified":"2026-06-30T22:30:00.000000+00:00","assetCustodian":{"identifier":{"id":"00032945"}},"items":[
	{"description":"Гараж","classification":{"id":"04120000-5"},"quantity":20.5,"address":{"region":"Київ","postalCode":"01220"}},
	{"description":"Склад","classification":{"id":"04210000-3"},"quantity":600,"address":{"region":"Одеська область","locality":"Одеса"}},
	{"description":"Склад цегляний","classification":{"id":"04210000-3"},"quantity":80,"address":{"region":"Львівська"}}]}`

// The function forPeople returns a file for people of the assets.
func forPeople(t *testing.T, p People, ending string, assets ...string) string {
	t.Helper()
	p.Kyiv = expect.Get(time.LoadLocation("Europe/Kyiv"))(t)
	p.Base, p.Total, p.Now = "https://registry.example", 12_345, time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	var file bytes.Buffer
	e := expect.Get(p.Form(ending).Open(&file))(t)
	for _, a := range assets {
		expect.OK(t, add(e, []byte(a)))
	}
	expect.OK(t, e.Close())
	return file.String()
}

// TestTheFoundItemIsShown asks for each item of an asset: by words, filters and quantities.
func TestTheFoundItemIsShown(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"", "Гараж"}, {"q=готель", "Гараж"}, {"q=склади", "Склад"}, {"q=цегляного+складу", "Склад цегляний"},
		{"classification=0421", "Склад"}, {"region=Львівська+область", "Склад цегляний"}, {"locality=одеса&q=гараж", "Склад"},
		{"quantity_from=60&quantity_to=100", "Склад цегляний"}, {"quantity_from=100", "Склад"}, {"quantity_to=30", "Гараж"},
		{"q=склад&region=Київ", "Гараж"}, {"q=04210000-3", "Склад"}, {"region=Крим", "Гараж"},
	} {
		row := tableOf(t, []byte(strings.TrimPrefix(forPeople(t, People{Lang: "en", Query: expect.Get(url.ParseQuery(c.query))(t)},
			"csv", estate), "\ufeff")))[0]
		expect.Equal(t, row["Item: Description"], c.want, "%s", c.query)
		expect.Equal(t, row["Items: how many"], "3", "%s: items", c.query)
	}
}

// TestAFileForPeopleHasWords reads headings and values in both languages.
// Promises: export-formulas
func TestAFileForPeopleHasWords(t *testing.T) {
	english := forPeople(t, People{Lang: "en"}, "csv", estate)
	if !strings.HasPrefix(english, "\ufeffNumber in the registry,Page,Type of asset,State,Title,\"Title, in English\",Description,") {
		t.Errorf("got %.200q, want the mark, the number, the page and names", english)
	}
	row := tableOf(t, []byte(strings.TrimPrefix(english, "\ufeff")))[0]
	for name, want := range map[string]string{
		"Page": "https://registry.example/en/assets/a1", "State": "Under verification", "Type of asset": "Property for privatisation",
		"Changed (Kyiv time)": "2026-07-01 01:30", "Title": "'=1+1;\"x\"", "Item: Quantity": "20.5", "Item: Address: Postal code": "01220",
		"Custodian: Identifier of the organisation: Identifier": "00032945",
	} {
		expect.Equal(t, row[name], want, "%s", name)
	}
	ukrainian := forPeople(t, People{Lang: "uk"}, "csv", estate)
	for _, want := range []string{"\ufeffНомер у реєстрі;Сторінка;", "Змінено (за Києвом);", "\r\nUA-1;https://registry.example/uk/assets/a1;",
		";На перевірці;\"'=1+1;\"\"x\"\"\";", ";20,5;"} {
		expect.ErrorIf(t, !strings.Contains(ukrainian, want), "got %q, want %q in it", ukrainian, want)
	}
}

// TestASheetForPeople reads the parts of an XLSX file that a spreadsheet shows beside the values.
func TestASheetForPeople(t *testing.T) {
	p := People{Lang: "uk", Licence: "https://licence.example", Query: url.Values{"q": {"=готель"}, "status": {"active", "pending"},
		"limit": {"100"}, "region": {"Одеська"}, "quantity_from": {"5"},
		"published_from": {"2026-11-24T22:00:00Z"}, "published_to": {"2026-11-26"}}}
	file := forPeople(t, p, "xlsx", estate, estate)
	first, second := partOf(t, file, "xl/worksheets/sheet1.xml"), partOf(t, file, "xl/worksheets/sheet2.xml")
	for _, want := range []string{`<pane ySplit="1"`, `<autoFilter ref="A1:`, `3"/></worksheet>`, `width="40"`, `<row r="3">`,
		`<c r="A1" s="2" t="inlineStr">`, `<c r="A3" s="1" t="inlineStr">`, ` s="3"><v>46204.062500</v>`, `>00032945<`, ` s="0"><v>600</v>`} {
		expect.ErrorIf(t, !strings.Contains(first, want), "got %s, want %s in it", first, want)
	}
	var rows []string
	for _, row := range strings.Split(second, "<row ")[1:] {
		row, _, _ = strings.Cut(row, "</row>")
		rows = append(rows, strings.Join(texts.FindAllString(row, -1), ""))
	}
	expect.NoDiff(t, cmp.Diff([]string{">Слова<>&#39;=готель<", ">Стан<>Виставлено на продаж, Опубліковано<", ">Область<>Одеська<",
		">Оприлюднено від<>2026-11-25 00:00<", ">Оприлюднено до<>2026-11-26<", ">Кількість від<>5<", ">Адреса питання<>https://registry.example/uk/?published_from=2026-11-24T22%3A00%3A00Z&amp;published_to=2026-11-26&amp;" +
			"q=%3D%D0%B3%D0%BE%D1%82%D0%B5%D0%BB%D1%8C&amp;quantity_from=5&amp;region=%D0%9E%D0%B4%D0%B5%D1%81%D1%8C%D0%BA%D0%B0&amp;" +
			"status=active&amp;status=pending<",
		">Зроблено (за Києвом)<>2026-12-01 01:00<", ">Рядків у файлі<>2 з 12345 знайдених<", ">Джерело<>https://registry.example<",
		">Ліцензія<>https://licence.example<"}, rows), "the second sheet")
}

// TestTheNameOfAFileSaysWhatItHolds has questions with characters that no name of a file has.
func TestTheNameOfAFileSaysWhatItHolds(t *testing.T) {
	kyiv := expect.Get(time.LoadLocation("Europe/Kyiv"))(t)
	for _, c := range []struct{ lang, query, want string }{
		{"uk", "", "Активи 2026-12-01"}, {"en", "q=hotel&status=active", "Assets 2026-12-01 hotel, Up for sale"},
		{"uk", "q=a/b:%22c%22%0A", "Активи 2026-12-01 a b c"},
		{"en", "q=" + strings.Repeat("ї", 300), "Assets 2026-12-01 " + strings.Repeat("ї", mostInName)},
	} {
		p := People{Lang: c.lang, Kyiv: kyiv, Now: time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC), Query: expect.Get(url.ParseQuery(c.query))(t)}
		expect.Equal(t, p.Name(), c.want, "%s", c.query)
	}
}

// TestRowsEndWithThePage adds the address of the page in all forms of a search.
func TestRowsEndWithThePage(t *testing.T) {
	for _, f := range Searches {
		var file bytes.Buffer
		e := expect.Get(f.With("https://registry.example").Open(&file))(t)
		expect.OK(t, add(e, asset(t, map[string]any{"items": items("1", 50.45, 30.52)})))
		expect.OK(t, e.Close())
		const page = "https://registry.example/assets/a1"
		switch f.Name {
		case "csv":
			expect.Equal(t, tableOf(t, file.Bytes())[0]["page"], page, "csv")
			head, _, _ := strings.Cut(file.String(), "\r\n")
			expect.Equal(t, strings.HasSuffix(head, ",page"), true, "csv: the last column")
		case "xlsx":
			expect.Equal(t, sheetOf(t, file.Bytes())[0]["page"], page, "xlsx")
		default:
			expect.Equal(t, strings.Contains(file.String(), `,"page":"`+page+`"}}`), true, "geojson: %s", file.String())
		}
	}
}
