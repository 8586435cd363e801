// Package bulk loads many assets into a registry for a broker (docs/import.md). It reads them from a CSV
// file with a Mapping or from lines of JSON, checks all rows before it sends the first one, then creates
// and publishes each and adds its documents. A Journal keeps tokens and progress, so a load that was
// killed goes on, and each row makes one asset.
package bulk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"asset-registry.example/client"
)

// Fault is one thing wrong with a file.
type Fault struct {
	Row    int    `json:"row,omitempty"`    // as a spreadsheet counts; 0: the whole file, or the mapping
	Column string `json:"column,omitempty"` // of the header, or a constant or a field; "": the whole row
	Text   string `json:"fault"`
}

// String returns the fault in one line.
func (f Fault) String() string {
	text := f.Text
	if f.Column != "" {
		text = f.Column + ": " + text
	}
	if f.Row > 0 {
		text = fmt.Sprintf("row %d, %s", f.Row, text)
	}
	return text
}

// Row is one row of a file: an asset and its documents.
type Row struct {
	Number    int
	Reference string
	Asset     client.Fields
	Documents []Document

	asset  json.RawMessage // as the file has it
	column func(path string) string
}

// Document is a document of a row.
type Document struct {
	File   string // path in the folder; "": the document has no file of the folder
	Fields client.Fields
}

// sum returns a hash of what the row sends.
func (r Row) sum() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode row %d: %w", r.Number, err)
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:16]), nil
}

// MarshalJSON returns the row without its number, so that a file may be put into another order.
func (r Row) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{r.Reference, r.Asset, r.Documents})
}

// Bounds of a file.
const (
	maxRow     = 2 << 20 // bytes of a row; a request has at most half of it
	maxBody    = 1 << 20 // bytes of a request, by default of the registry
	maxColumns = 1000
)

// reader reads the rows of a file. Next returns io.EOF after the last row. Faults concern the form
// of the row, which then cannot be used. Any other error ends the reading.
type reader interface {
	next() (Row, []Fault, error)
}

// Source is a file to load. It can be read several times.
type Source struct {
	File    io.ReadSeeker
	Mapping *Mapping // of a CSV file; nil: the file has lines of JSON
}

// open starts to read the rows. The faults concern the header and the mapping.
func (s Source) open() (reader, []Fault, error) {
	if _, err := s.File.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	if s.Mapping == nil {
		return newLines(s.File), nil, nil
	}
	return newTable(s.File, *s.Mapping)
}

// errRow is the error of a row without an end.
var errRow = fmt.Errorf("a row has more than %d bytes: perhaps a quote is not closed", maxRow)

// bounded reads at most so many bytes until the bound is set again.
type bounded struct {
	in   io.Reader
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errRow
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// The marks at the beginning of texts.
var (
	utf8Mark   = []byte("\xef\xbb\xbf")
	utf16Marks = [][]byte{[]byte("\xff\xfe"), []byte("\xfe\xff")}
)

// markFault returns what the first bytes of a file say against it; "" if nothing.
func markFault(begin []byte) string {
	for _, mark := range utf16Marks {
		if bytes.HasPrefix(begin, mark) {
			return "the file is UTF-16: save it as UTF-8"
		}
	}
	return ""
}
