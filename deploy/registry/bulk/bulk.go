// Package bulk loads many assets into a registry for a broker (docs/import.md). It reads them from a table, XLSX or
// CSV, with a Mapping, or from lines of JSON. It checks all rows before it sends the first one. Then it creates and
// publishes an asset for each row and adds its documents. A Journal keeps tokens and progress, so a load that
// was killed can continue, and no row makes two assets.
package bulk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"asset-registry.example/client"
	"asset-registry/assetsvc/rehearse"
)

// Fault is one fault of a file.
type Fault struct {
	Row    int    `json:"row,omitempty"`    // row number in a spreadsheet; 0: the whole file, or the mapping
	Column string `json:"column,omitempty"` // name of the column, constant or field; "": the whole row
	Text   string `json:"fault"`
}

// String returns the fault in one line.
func (f Fault) String() string { return Finding{Fault: f}.String() }

// Level says what a finding means for an import.
type Level string

// The levels of findings.
const (
	Refusal Level = ""        // a fault: nothing is sent
	Warning Level = "warning" // a value that was perhaps misread: nothing is sent unless the user accepts it
	Note    Level = "note"    // how the file is read
	Skipped Level = "skipped" // a row that the mapping skips
	Changes Level = "change"  // a value of an asset that the import replaces
)

// Finding is what a check tells about a file.
type Finding struct {
	Fault
	Level Level    `json:"level,omitempty"`
	Cells []string `json:"-"` // the cells of the row of a table
}

// String returns the finding in one line.
func (f Finding) String() string { return f.In("en") }

// Row is one row of a file: an asset and its documents.
type Row struct {
	Number    int
	Reference string
	Asset     client.Fields
	Documents []Document

	asset  json.RawMessage // the asset in JSON, as the file has it
	found  []Finding       // findings in the cells of the row, and in the file up to it
	dates  string          // form of dates in the file; "": that of the API
	column func(path string) string

	cells   []string            // texts of the row of a table
	cleared []string            // paths of fields that empty cells clear
	lists   map[string][]string // paths of lists -> the numbers in the mapping of the elements that the row fills
	left    bool                // the row has left the table
}

// Document is a document in a row, which will become a document of the asset.
type Document struct {
	File   string // path in the folder; "": the folder has no file for the document
	Fields client.Fields
}

// sums are hashes of everything that a row sends. The next release leaves Bytes out: programs before this one know
// nothing else.
type sums struct {
	Same  string `json:"same,omitempty"` // hash of the canonical form
	Bytes string `json:"sum,omitempty"`
}

func (r Row) sums() (sums, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return sums{}, fmt.Errorf("encode row %d: %w", r.Number, err)
	}
	same, faults := rehearse.Canonical(text)
	if len(faults) > 0 {
		return sums{}, fmt.Errorf("encode row %d: %s", r.Number, faults[0].Text)
	}
	one, other := sha256.Sum256(same), sha256.Sum256(text)
	return sums{hex.EncodeToString(one[:16]), hex.EncodeToString(other[:16])}, nil
}

// MarshalJSON encodes the row without its number, so that the rows of a file may be sorted anew.
func (r Row) MarshalJSON() ([]byte, error) {
	parts := []any{r.Reference, r.Asset, r.Documents}
	if len(r.cleared) > 0 {
		parts = append(parts, r.cleared)
	}
	return json.Marshal(parts)
}

// Limits of a file, and of the requests that are made from it.
const (
	maxRow     = 2 << 20 // bytes of a row; a request has at most half as many
	maxBody    = 1 << 20 // bytes of a request, by the default of the registry
	maxColumns = 1000
)

// reader reads the rows of a file. The method `next` returns io.EOF after the last row. If next returns faults,
// the row has a wrong form and cannot be used. Any other error ends the reading. The row has findings also with an
// error.
type reader interface {
	next() (Row, []Fault, error)
}

// Source is a file to load. It can be read several times.
type Source struct {
	File interface {
		io.ReadSeeker
		io.ReaderAt
	}
	Mapping *Mapping                    // mapping of a table; nil: the file has lines of JSON
	Known   func(reference string) bool // an import has made the asset before; nil: no row is known
	files   *Folder
}

// open starts to read the rows. The faults that it returns concern the header and the mapping.
func (s Source) open() (reader, []Fault, error) {
	if _, err := s.File.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	if s.Mapping == nil {
		return newLines(s.File), nil, nil
	}
	t := &table{mapping: *s.Mapping, files: s.files, told: map[Fault]bool{}, values: map[string]named{}, isKnown: s.Known}
	if faults, err := t.open(s); len(faults) > 0 || err != nil {
		return nil, faults, err
	}
	return t, t.headerFaults(), nil
}

// errRow is the error for a row that does not end within maxRow bytes.
var errRow = fmt.Errorf("a row has more than %d bytes: perhaps a quote is not closed", maxRow)

// bounded is a reader that returns a limited number of bytes. The limit is the field `left`; the caller sets it
// again for each row.
type bounded struct {
	in   io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errRow
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// utf8Mark is the byte order mark with which a file may begin.
var utf8Mark = []byte("\xef\xbb\xbf")

// isUTF16 reports whether the first bytes of a file are the byte order mark of UTF-16.
func isUTF16(begin []byte) bool {
	return bytes.HasPrefix(begin, []byte("\xff\xfe")) || bytes.HasPrefix(begin, []byte("\xfe\xff"))
}
