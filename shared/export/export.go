// Package export writes assets as tables, as places and as lines of JSON (docs/data.md).
package export

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"asset-registry/shared/routes"
)

// Form is a format in which assets can be exported.
type Form struct {
	Name        string // in Whole, the name of the file; in Searches, the ending of the file's name
	ContentType string
	open        func(io.Writer, []column) (writer, error)
	table       int    // index in Tables
	base        string // public address of the registry; "": rows have no address of a page
}

const (
	csvType    = "text/csv; charset=utf-8; header=present"
	xlsxType   = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	placesType = "application/geo+json"
)

// Searches are the formats for the results of a search.
var Searches = []Form{
	{Name: "csv", ContentType: csvType, open: openCSV(0)},
	{Name: "xlsx", ContentType: xlsxType, open: openXLSX},
	{Name: "geojson", ContentType: placesType, open: openGeoJSON},
}

// Whole are the files of a copy of the whole registry.
var Whole = []Form{
	{Name: "assets.csv", ContentType: csvType, open: openCSV(ofAssets)},
	{Name: "items.csv", ContentType: csvType, open: openCSV(ofItems), table: ofItems},
	{Name: "documents.csv", ContentType: csvType, open: openCSV(ofDocuments), table: ofDocuments},
	{Name: "assets.jsonl.gz", ContentType: "application/gzip", open: openLines},
	{Name: "assets.geojson", ContentType: placesType, open: openGeoJSON},
}

// writer writes assets in one format.
type writer interface {
	add(a *Asset) (rows int, err error)
	close() error // writes the end
}

// Export is a file that is being written.
type Export struct {
	to   writer
	base string
	rows int
}

// With returns the form whose rows end with the address of the asset's page. The address begins with the public
// address of a registry.
func (f Form) With(base string) Form {
	f.base = base
	return f
}

// Open begins a file in a format.
func (f Form) Open(w io.Writer) (*Export, error) {
	columns := Tables[f.table].columns
	if f.base != "" {
		columns = append(slices.Clip(columns), column{name: "page"})
	}
	to, err := f.open(w, columns)
	return &Export{to: to, base: f.base}, err
}

// Add adds an asset.
func (e *Export) Add(a *Asset) error {
	if e.base != "" {
		row := &a.rows[ofAssets][0]
		*row = append(*row, cell{text: pageOf(e.base, a)})
	}
	rows, err := e.to.add(a)
	e.rows += rows
	return err
}

// Rows returns how many rows, lines or features the file has.
func (e *Export) Rows() int { return e.rows }

// Close writes the end of the file.
func (e *Export) Close() error { return e.to.close() }

// pageOf returns the address of an asset's page.
func pageOf(base string, a *Asset) string {
	return base + strings.Replace(routes.AnyLanguage, ":id", a.rows[ofAssets][0][idColumn].text, 1)
}

// WriteTable writes rows as a file with the ending csv or xlsx, and returns its content type. The sheet of XLSX has the
// name. A cell that is no string is written as a number.
func WriteTable(w io.Writer, ending, name string, rows [][]any) (contentType string, err error) {
	var to rowWriter = &csvFile{to: w, separator: ','}
	contentType = csvType
	if ending == "xlsx" {
		contentType = xlsxType
		if to, err = newSheet(w, sheetPage{name: name}); err != nil {
			return "", err
		}
	}
	for _, row := range rows {
		var line []cell
		for _, value := range row {
			_, isText := value.(string)
			line = append(line, cell{text: fmt.Sprint(value), isNumber: !isText})
		}
		if err := to.addRow(line); err != nil {
			return "", err
		}
	}
	return contentType, to.close()
}

// rowWriter writes the rows of a table.
type rowWriter interface {
	writer
	addRow(row []cell) error
}
