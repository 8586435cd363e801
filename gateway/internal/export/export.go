// Package export writes found assets as tables and as places (docs/data.md, "Exports").
package export

import "io"

// Form is a form of an export.
type Form struct {
	Name        string // ending of the path and of the file
	ContentType string
	open        func(io.Writer) (writer, error)
}

// Forms are all forms.
var Forms = []Form{
	{"csv", "text/csv; charset=utf-8; header=present", openCSV},
	{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", openXLSX},
	{"geojson", "application/geo+json", openGeoJSON},
}

// writer writes rows in a form.
type writer interface {
	add(r *record, row []cell) error
	close() error // writes the end
}

// Export is a file that is being written.
type Export struct{ to writer }

// Open begins a file in a form.
func (f Form) Open(w io.Writer) (*Export, error) {
	to, err := f.open(w)
	return &Export{to}, err
}

// Add adds an asset as JSON, unless no search finds it any more.
func (e *Export) Add(asset []byte) error {
	r, ok, err := parse(asset)
	if err != nil || !ok {
		return err
	}
	return e.to.add(r, row(r))
}

// Close writes the end of the file.
func (e *Export) Close() error { return e.to.close() }
