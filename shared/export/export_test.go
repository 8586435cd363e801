package export

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"asset-registry/shared/cells"
	"asset-registry/shared/testing/expect"
)

// asset returns a usual asset in which the given fields replace others.
func asset(t *testing.T, fields map[string]any) []byte {
	t.Helper()
	a := map[string]any{
		"id": "a1", "status": "active", "title": "Готель", "assetCustodian": map[string]any{
			"identifier":   map[string]any{"scheme": "UA-EDR", "id": "00032945"},
			"contactPoint": map[string]any{"telephone": "+380441234567"},
		},
	}
	for name, value := range fields {
		a[name] = value
	}
	text, err := json.Marshal(a)
	expect.OK(t, err)
	return text
}

// items returns a list of one item with a quantity and a place.
func items(quantity string, latitude, longitude any) []any {
	return []any{map[string]any{"quantity": json.Number(quantity), "location": map[string]any{
		"latitude": latitude, "longitude": longitude}}}
}

// add adds an asset, given as JSON, if searches may find the asset.
func add(e *Export, line []byte) error {
	a, ok, err := Read(line)
	if err != nil || !ok {
		return err
	}
	return e.Add(a)
}

// exported returns a file of assets. The argument `form` names one of the formats in the variable Searches.
func exported(t *testing.T, form string, assets ...[]byte) []byte {
	t.Helper()
	var file bytes.Buffer
	f := Searches[slices.IndexFunc(Searches, func(f Form) bool { return f.Name == form })]
	e, err := f.Open(&file)
	expect.OK(t, err)
	for _, a := range assets {
		expect.OK(t, add(e, a))
	}
	expect.OK(t, e.Close())
	return file.Bytes()
}

// tableOf returns the rows of a CSV file, by the names of columns.
func tableOf(t *testing.T, file []byte) (all []map[string]string) {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	expect.FatalIf(t, err != nil, "%v: %s", err, file)
	for _, row := range rows[1:] {
		of := map[string]string{}
		for i, name := range rows[0] {
			of[name] = row[i]
		}
		all = append(all, of)
	}
	return all
}

// texts matches the texts between the tags of XML.
var texts = regexp.MustCompile(`>[^<]+<`)

// partOf returns a part of a ZIP file.
func partOf(t *testing.T, file, name string) string {
	t.Helper()
	archive := expect.Get(zip.NewReader(strings.NewReader(file), int64(len(file))))(t)
	part := expect.Get(archive.Open(name))(t)
	return string(expect.Get(io.ReadAll(part))(t))
}

// sheetOf returns the rows of an XLSX file, by the names of columns. A number has a # in front.
func sheetOf(t *testing.T, file []byte) (all []map[string]string) {
	t.Helper()
	text := []byte(partOf(t, string(file), "xl/worksheets/sheet1.xml"))
	var sheet struct {
		Rows []struct {
			Cells []struct {
				At     string `xml:"r,attr"`
				Number string `xml:"v"`
				Text   string `xml:"is>t"`
			} `xml:"c"`
		} `xml:"sheetData>row"`
	}
	if err := xml.Unmarshal(text, &sheet); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	columns := map[string]string{} // names by letters
	for number, row := range sheet.Rows {
		of := map[string]string{}
		for _, c := range row.Cells {
			letters := strings.TrimSuffix(c.At, strconv.Itoa(number+1))
			if number == 0 {
				columns[letters] = c.Text
			}
			if of[columns[letters]] = c.Text; c.Number != "" {
				of[columns[letters]] = "#" + c.Number
			}
		}
		if number > 0 {
			all = append(all, of)
		}
	}
	return all
}

// TestTextsAreNoFormulas exports texts that a spreadsheet would calculate. Each form must have them with a '.
// Promises: export-formulas
func TestTextsAreNoFormulas(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{"=1+1", "'=1+1"}, {"\r\n=1", "\r\n'=1"}, {"a;-cmd|' /C calc'!A0", "a;'-cmd|' /C calc'!A0"}, {"- будинок", "- будинок"}, {"", ""},
		{"a\nb\r\nc\td", "a\nb\r\nc\td"}, {`"=1"`, `"=1"`}, {"a,\"b\"", "a,\"b\""},
	} {
		a := asset(t, map[string]any{"title": c.sent, "assetCustodian": map[string]any{
			"name": c.sent, "contactPoint": map[string]any{"telephone": c.sent}}})
		file := exported(t, "csv", a)
		for form, row := range map[string]map[string]string{
			"csv": tableOf(t, file)[0], "xlsx": sheetOf(t, exported(t, "xlsx", a))[0],
		} {
			for _, column := range []string{"title", "assetCustodian.name", "assetCustodian.contactPoint.telephone"} {
				// encoding/csv reads CR LF as LF.
				if got := row[column]; got != c.want && got != strings.ReplaceAll(c.want, "\r\n", "\n") {
					t.Errorf("%s: %q as %s: got %q, want %q", form, c.sent, column, got, c.want)
				}
			}
		}
		expect.ErrorIf(t, !bytes.Contains(file, []byte(strings.ReplaceAll(c.want, `"`, `""`))),
			"csv: got %s, want the line breaks of %q", file, c.want)
	}
}

// TestNumbersKeepTheirDigits exports quantities that floats would round. Each file must have all digits.
// Promises: export-numbers
func TestNumbersKeepTheirDigits(t *testing.T) {
	for _, c := range []struct{ quantity, sheet string }{
		{"1", "#1"}, {"-2.5", "#-2.5"}, {"0.0001", "#0.0001"}, {"123456789012.345", "#123456789012.345"},
		{"1234567890123456.7", "1234567890123456.7"}, {"1234567890123456789012345678901234", "1234567890123456789012345678901234"},
	} {
		a := asset(t, map[string]any{"items": items(c.quantity, "50.4500", 30.52)})
		expect.Equal(t, tableOf(t, exported(t, "csv", a))[0]["items.0.quantity"], c.quantity, "csv")
		row := sheetOf(t, exported(t, "xlsx", a))[0]
		expect.Equal(t, row["items.0.quantity"], c.sheet, "xlsx")
		expect.Equal(t, row["assetCustodian.identifier.id"], "00032945", "xlsx: the id")
		if file := exported(t, "geojson", a); !bytes.Contains(file, []byte(`"items.0.quantity":`+c.quantity+",")) {
			t.Errorf("geojson: got %s, want the number %s", file, c.quantity)
		}
	}
}

// TestPlacesHaveTheLongitudeFirst checks that coordinates have the order of RFC 7946, and that an asset without
// a place has no feature.
// Promises: export-places
func TestPlacesHaveTheLongitudeFirst(t *testing.T) {
	two := append(items("1", "50.4500", "30.52"), items("1", 49.84, " +24.0300")...)
	for _, c := range []struct {
		items []any
		want  string
	}{
		{items("1", "50.4500", 30.52), `{"coordinates":[30.52,50.4500],"type":"Point"}`},
		{two, `{"coordinates":[[30.52,50.4500],[24.03,49.84]],"type":"MultiPoint"}`},
		{items("1", "50,45", "30,52"), ""},
		{items("1", "91", "30"), ""},
		{items("1", "NaN", "30"), ""},
		{items("1", "", ""), ""},
		{nil, ""},
	} {
		var got struct {
			Type     string
			Features []struct {
				ID                   string
				Geometry, Properties map[string]any
			}
		}
		decoder := json.NewDecoder(bytes.NewReader(exported(t, "geojson", asset(t, map[string]any{"items": c.items}))))
		decoder.UseNumber()
		expect.OK(t, decoder.Decode(&got))
		if got.Type != "FeatureCollection" || len(got.Features) != min(len(c.want), 1) {
			t.Errorf("%v: got %+v, want a collection with a feature if there is a place", c.items, got)
			continue
		}
		if c.want == "" {
			continue
		}
		geometry, _ := json.Marshal(got.Features[0].Geometry)
		if string(geometry) != c.want || got.Features[0].Properties["title"] != "Готель" {
			t.Errorf("%v: got %s and %v, want %s and the fields", c.items, geometry, got.Features[0].Properties, c.want)
		}
	}
}

// TestAssetsThatNoSearchFindsAreLeftOut adds assets that became drafts, test assets or deleted assets after the
// search. The file must not have them.
func TestAssetsThatNoSearchFindsAreLeftOut(t *testing.T) {
	good := asset(t, nil)
	for _, changed := range []map[string]any{{"status": "deleted"}, {"status": "draft"}, {"mode": "test"}} {
		if got := tableOf(t, exported(t, "csv", asset(t, changed), good)); len(got) != 1 {
			t.Errorf("%v: got %v, want the other asset only", changed, got)
		}
	}
}

func TestCellsHoldWhatTheyCan(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{strings.Repeat("ї", mostInCell), strings.Repeat("ї", mostInCell)},
		{strings.Repeat("ї", mostInCell+1), strings.Repeat("ї", mostInCell-1) + "…"},
		{strings.Repeat("😀", mostInCell), strings.Repeat("😀", mostInCell/2) + "…"},
		{"a_x0041_x0042_b\x0b", "a_x005F_x0041_x005F_x0042_b\ufffd"},
		{"a_xyz", "a_xyz"},
		{"<&>", "<&>"},
	} {
		got := sheetOf(t, exported(t, "xlsx", asset(t, map[string]any{"description": c.sent})))[0]["description"]
		expect.ErrorIf(t, got != c.want || len(utf16.Encode([]rune(got))) > mostInCell,
			"%.20q: got %d characters, %.40q, want %.40q", c.sent, len(got), got, c.want)
		if got := tableOf(t, exported(t, "csv", asset(t, map[string]any{"description": c.sent})))[0]["description"]; got != c.sent {
			t.Errorf("csv: got %d bytes, want all %d", len(got), len(c.sent))
		}
	}
}

func FuzzTablesCanBeRead(f *testing.F) {
	f.Add("=1", "a\"b,\r\n")
	f.Add("-\x01", "+\v") // XML replaces these characters
	f.Fuzz(func(t *testing.T, title, description string) {
		a := asset(t, map[string]any{"title": title, "description": description})
		rows, sheet := tableOf(t, exported(t, "csv", a, a)), sheetOf(t, exported(t, "xlsx", a, a))
		expect.ErrorIf(t, len(rows) != 2 || len(sheet) != 2 || !json.Valid(exported(t, "geojson", a, a)),
			"got %d and %d rows, want 2", len(rows), len(sheet))
		for _, cell := range []string{rows[0]["title"], sheet[0]["description"]} {
			expect.Equal(t, cell, cells.Harmless(cell), "")
		}
	})
}

// TestATableHasItsRows writes a table with a text, a formula, a text of digits and numbers.
func TestATableHasItsRows(t *testing.T) {
	rows := [][]any{{"a", "b"}, {"=1+1", int64(7)}, {"007", json.Number("1.50")}, {"x, \"y\"", ""}}
	var file bytes.Buffer
	got := expect.Get(WriteTable(&file, "csv", "a", rows))(t)
	expect.Equal(t, got, csvType, "the type of CSV")
	expect.Equal(t, file.String(), "a,b\r\n'=1+1,7\r\n007,1.50\r\n\"x, \"\"y\"\"\",\r\n", "CSV")
	file.Reset()
	got = expect.Get(WriteTable(&file, "xlsx", "a", rows))(t)
	expect.Equal(t, got, Searches[1].ContentType, "the type of XLSX")
	const first, second = "a", "b"
	sheet := sheetOf(t, file.Bytes())
	for i, want := range [][2]string{{"'=1+1", "#7"}, {"007", "#1.50"}, {"x, \"y\"", ""}} {
		expect.Equal(t, [2]string{sheet[i][first], sheet[i][second]}, want, "the row %d", i)
	}
}
