// Package export writes assets as tables, as places and as lines of JSON (docs/data.md).
package export

import (
	"fmt"
	"io"
)

// Form is a format in which assets can be exported.
type Form struct {
	Name        string // in Whole, the name of the file; in Searches, the ending of the file's name
	ContentType string
	open        func(io.Writer) (writer, error)
}

const (
	csvType    = "text/csv; charset=utf-8; header=present"
	placesType = "application/geo+json"
)

// Searches are the formats for the results of a search.
var Searches = []Form{
	{"csv", csvType, openCSV(0)},
	{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", openXLSX},
	{"geojson", placesType, openGeoJSON},
}

// Whole are the files of a copy of the whole registry.
var Whole = []Form{
	{"assets.csv", csvType, openCSV(0)},
	{"items.csv", csvType, openCSV(1)},
	{"documents.csv", csvType, openCSV(2)},
	{"assets.jsonl.gz", "application/gzip", openLines},
	{"assets.geojson", placesType, openGeoJSON},
}

// writer writes assets in one format.
type writer interface {
	add(a *Asset) (rows int, err error)
	close() error // writes the end
}

// Export is a file that is being written.
type Export struct {
	to   writer
	rows int
}

// Open begins a file in a format.
func (f Form) Open(w io.Writer) (*Export, error) {
	to, err := f.open(w)
	return &Export{to: to}, err
}

// Add adds an asset.
func (e *Export) Add(a *Asset) error {
	rows, err := e.to.add(a)
	e.rows += rows
	return err
}

// Rows returns how many rows, lines or features the file has.
func (e *Export) Rows() int { return e.rows }

// Close writes the end of the file.
func (e *Export) Close() error { return e.to.close() }

// WriteTable writes rows as a file with the ending csv or xlsx, and returns its content type. A cell that is no string
// is written as a number.
func WriteTable(w io.Writer, ending string, rows [][]any) (contentType string, err error) {
	var to interface {
		writer
		addRow(row []cell) error
	} = &csvFile{to: w}
	contentType = csvType
	if ending == "xlsx" {
		contentType = Searches[1].ContentType
		if to, err = newSheet(w); err != nil {
			return "", err
		}
	}
	for _, row := range rows {
		var line []cell
		for _, value := range row {
			_, isText := value.(string)
			line = append(line, cell{fmt.Sprint(value), !isText})
		}
		if err := to.addRow(line); err != nil {
			return "", err
		}
	}
	return contentType, to.close()
}
