package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"asset-registry/shared/testing/expect"
)

// The function `whole` returns the files of a whole copy of the assets, and the number of rows of each file, both by
// file name.
func whole(t *testing.T, assets ...string) (files map[string]string, rows map[string]int) {
	t.Helper()
	files, rows = map[string]string{}, map[string]int{}
	for _, f := range Whole {
		var file bytes.Buffer
		e, err := f.Open(&file)
		expect.OK(t, err)
		for _, a := range assets {
			expect.OK(t, add(e, []byte(a)))
		}
		expect.OK(t, e.Close())
		files[f.Name], rows[f.Name] = file.String(), e.Rows()
	}
	return files, rows
}

const (
	hotel = `{"id":"a1","status":"active","title":"=Готель","items":[` +
		`{"id":"i1","description":"Будівля, \"А\"","quantity":1.50,"location":{"latitude":"46.48","longitude":30.72}},` +
		`{"id":"i2","description":"Гараж\r\nі сарай","quantity":2,"location":{"latitude":"невідомо","longitude":"30"}}],` +
		`"documents":[{"id":"d1","documentType":"notice","title":"@Наказ","url":"https://x/1","size":10}]}`
	land    = `{"id":"a2","status":"pending","title":"Ділянка","x": "as <sent>"}`
	test    = `{"id":"a3","status":"active","mode":"test"}`
	removed = `{"id":"a4","status":"deleted"}`
)

// TestAWholeCopyHasThreeTables reads the tables back. They must have a row for
// each asset that searches find, and for each of its items and documents.
// Promises: whole-rows, whole-files, export-formulas
func TestAWholeCopyHasThreeTables(t *testing.T) {
	files, rows := whole(t, hotel, land, test, removed)
	want := map[string]int{"assets.csv": 2, "items.csv": 2, "documents.csv": 1, "assets.jsonl.gz": 2, "assets.geojson": 1}
	expect.NoDiff(t, cmp.Diff(want, rows), "rows")
	for _, table := range Tables {
		got := tableOf(t, []byte(files[table.Name+".csv"]))
		expect.Equal(t, len(got), rows[table.Name+".csv"], "%s: rows", table.Name)
		for i, row := range got {
			expect.Equal(t, len(row), len(table.Columns()), "%s, row %d: columns", table.Name, i)
		}
	}
	items := tableOf(t, []byte(files["items.csv"]))
	for i, want := range []map[string]string{
		{"asset.id": "a1", "id": "i1", "description": `Будівля, "А"`, "quantity": "1.50", "location.latitude": "46.48"},
		{"asset.id": "a1", "id": "i2", "description": "Гараж\nі сарай", "quantity": "2", "location.latitude": "невідомо"},
	} {
		for name, value := range want { // the text has LF here: encoding/csv reads CR LF as LF
			expect.Equal(t, items[i][name], value, "item %d, %s", i, name)
		}
	}
	if !strings.Contains(files["items.csv"], "Гараж\r\nі сарай") {
		t.Error("got another line break within a text, want the one that was sent")
	}
	document := tableOf(t, []byte(files["documents.csv"]))[0]
	expect.ErrorIf(t, document["title"] != "'@Наказ" || document["size"] != "10" || document["asset.id"] != "a1",
		"got the document %v", document)
	expect.Equal(t, tableOf(t, []byte(files["assets.csv"]))[0]["title"], "'=Готель", "the title")
}

// TestColumnsStayInTheirOrder compares the columns with those that are published. Others may only follow them.
// Promises: whole-columns
func TestColumnsStayInTheirOrder(t *testing.T) {
	published := map[string]string{
		"assets": "id assetID assetType status title title_en description owner rectificationPeriod.startDate date " +
			"dateModified assetCustodian.name assetCustodian.identifier.scheme assetCustodian.identifier.id " +
			"assetCustodian.contactPoint.email assetCustodian.contactPoint.telephone documents.length items.length " +
			"items.0.description items.0.classification.scheme items.0.classification.id " +
			"items.0.classification.description items.0.quantity items.0.unit.code items.0.unit.name " +
			"items.0.address.region items.0.address.locality items.0.address.streetAddress items.0.address.postalCode " +
			"items.0.location.latitude items.0.location.longitude",
		"items": "asset.id id description classification.scheme classification.id classification.description quantity " +
			"unit.code unit.name address.region address.locality address.streetAddress address.postalCode " +
			"location.latitude location.longitude",
		"documents": "asset.id id documentType title description format url hash sha256 size accessDetails language documentOf " +
			"relatedItem author datePublished dateModified",
	}
	for _, table := range Tables {
		var got []string
		for _, c := range table.Columns() {
			got = append(got, c.Name)
		}
		if all := strings.Join(got, " "); !strings.HasPrefix(all+" ", published[table.Name]+" ") {
			t.Errorf("%s: got the columns %s, want at first %s", table.Name, all, published[table.Name])
		}
	}
}

// TestTheLinesOfAWholeCopyAreExact compares the lines with the assets. They must be equal byte by byte.
// Promises: whole-lines
func TestTheLinesOfAWholeCopyAreExact(t *testing.T) {
	files, _ := whole(t, hotel, test, land)
	r, err := gzip.NewReader(strings.NewReader(files["assets.jsonl.gz"]))
	expect.OK(t, err)
	got, err := io.ReadAll(r)
	expect.OK(t, err)
	expect.NoDiff(t, cmp.Diff(hotel+"\n"+land+"\n", string(got)), "lines")
}

// TestAValueOfAnotherTypeIsLeftOut exports values of types that today's rules refuse. Their cells must be empty.
func TestAValueOfAnotherTypeIsLeftOut(t *testing.T) {
	files, _ := whole(t, `{"id":"a1","title":5,"items":[{"quantity":{},"description":"Дах"}],"documents":7,"status":"active"}`)
	row := tableOf(t, []byte(files["assets.csv"]))[0]
	if row["id"] != "a1" || row["title"] != "" || row["items.0.description"] != "Дах" || row["items.0.quantity"] != "" || row["status"] != "active" {
		t.Errorf("got %v, want all but the title and the documents", row)
	}
	if _, _, err := Read([]byte(`{"id":`)); err == nil {
		t.Error("half an asset: got no error, want one")
	}
}

// TestEmptyFilesAreWhole exports no assets. The files must be valid nevertheless.
func TestEmptyFilesAreWhole(t *testing.T) {
	files, _ := whole(t)
	for _, table := range Tables {
		rows, err := csv.NewReader(strings.NewReader(files[table.Name+".csv"])).ReadAll()
		expect.ErrorIf(t, err != nil || len(rows) != 1, "%s: got %v, %v; want a header", table.Name, rows, err)
	}
	if !json.Valid([]byte(files["assets.geojson"])) {
		t.Errorf("got %s, want GeoJSON", files["assets.geojson"])
	}
}
