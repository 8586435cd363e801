// Package sheet reads the cells of XLSX files (ECMA-376) in a bounded memory. It gives the stored value of a cell and
// its kind, and not the text that a spreadsheet shows.
package sheet

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
)

// Kind is the kind of a cell.
type Kind int

// The kinds of cells. A file without kinds, such as CSV, has Shown only.
const (
	Shown   Kind = iota // text as a program has shown the value
	Text                // text, or nothing
	Number              // decimal without exponent, of at most 15 digits as in a spreadsheet
	Date                // YYYY-MM-DD, perhaps with Thh:mm:ss
	Truth               // TRUE or FALSE
	Failed              // error of a formula, such as #REF!
	Missing             // formula whose value was not stored
)

// Cell is the value of a cell.
type Cell struct {
	Text string
	Kind Kind
}

// Bounds of a file. A spreadsheet of 100,000 rows with 15 columns has about a tenth of them.
var (
	maxPart    int64 = 1 << 30 // bytes of an unpacked part
	maxCells         = 20_000_000
	maxStrings       = 128 << 20 // bytes of all shared texts
	maxItems         = 4_000_000 // shared texts, styles, sheets
)

const (
	maxNames  = 4 << 20   // bytes of the names of parts
	maxToken  = 1 << 20   // bytes of a tag or a text in XML
	maxDeep   = 100       // elements of XML in one another; a spreadsheet has about ten
	maxText   = 128 << 10 // bytes of a cell; a spreadsheet has at most 32,767 characters there
	maxRow    = 2 << 20   // bytes of a row's texts
	maxColumn = 16_384
	maxRows   = 1_048_576
)

// Sheet is one table of a file.
type Sheet struct {
	Name   string
	Hidden bool
	part   string
}

// Book is a file with its sheets.
type Book struct {
	Sheets []Sheet

	parts    map[string]*zip.File // by their names in lower case
	is1904   bool
	isDate   []bool // by the number of a style
	texts    []byte
	textEnds []int // ends of the shared texts in the field `texts`
}

var errForm = errors.New("the file is no XLSX file, or it is damaged")

// Named says which other form a file has that begins with these bytes and what to do, or "".
func Named(begin []byte) string {
	const save = ": save it as an Excel workbook (.xlsx)"
	switch {
	case bytes.HasPrefix(begin, []byte("\xd0\xcf\x11\xe0")):
		return "the file is an .xls file, or has a password: save it without password as an Excel workbook (.xlsx)"
	case bytes.HasPrefix(begin, []byte("PK")) && bytes.Contains(begin, []byte("application/vnd.oasis.opendocument")):
		return "the file is an .ods file" + save
	case bytes.HasPrefix(begin, []byte("%PDF")):
		return "the file is a PDF file, which has no cells: ask for the table itself"
	}
	return ""
}

// Open reads the names of the sheets, the styles and the shared texts.
func Open(file io.ReaderAt, size int64) (*Book, error) {
	limited := &limitedFile{file, maxNames}
	archive, err := zip.NewReader(limited, size)
	if limited.left < 0 {
		return nil, fmt.Errorf("the file has more than %d bytes of names: %w", maxNames, errForm)
	}
	if err != nil {
		return nil, errForm
	}
	limited.left = math.MaxInt64
	b := &Book{parts: map[string]*zip.File{}}
	for _, f := range archive.File {
		b.parts[strings.ToLower(strings.ReplaceAll(f.Name, `\`, "/"))] = f
	}
	if b.parts["xl/workbook.bin"] != nil {
		return nil, errors.New("the file is an .xlsb file: save it as an Excel workbook (.xlsx)")
	}
	_, kinds, err := b.related("")
	if err != nil {
		return nil, err
	}
	workbook := kinds["officeDocument"]
	ids, kinds, err := b.related(workbook)
	if err != nil {
		return nil, err
	}
	if err := b.readWorkbook(workbook, ids); err != nil {
		return nil, err
	}
	if part := kinds["styles"]; part != "" {
		err = b.readStyles(part)
	}
	if part := kinds["sharedStrings"]; part != "" && err == nil {
		err = b.readTexts(part)
	}
	if err == nil && len(b.Sheets) == 0 {
		err = errForm
	}
	return b, err
}

// limitedFile is a file of which a limited number of bytes is read.
type limitedFile struct {
	io.ReaderAt
	left int64
}

// ReadAt implements io.ReaderAt.
func (l *limitedFile) ReadAt(p []byte, at int64) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errForm
	}
	return l.ReaderAt.ReadAt(p, at)
}

// related returns the parts to which a part refers, by the ids of the relationships and by their types.
func (b *Book) related(part string) (ids, kinds map[string]string, err error) {
	ids, kinds = map[string]string{}, map[string]string{}
	dir, name := path.Split(part)
	err = b.each(path.Join(dir, "_rels", name+".rels"), func(t xml.StartElement) error {
		if t.Name.Local == "Relationship" && attribute(t, "TargetMode") != "External" {
			target := attribute(t, "Target")
			if !strings.HasPrefix(target, "/") {
				target = path.Join("/", dir, target)
			}
			target = strings.TrimPrefix(path.Clean(target), "/")
			ids[attribute(t, "Id")], kinds[path.Base(attribute(t, "Type"))] = target, target
		}
		return nil
	})
	return ids, kinds, err
}

func (b *Book) readWorkbook(part string, ids map[string]string) error {
	return b.each(part, func(t xml.StartElement) error {
		switch t.Name.Local {
		case "workbookPr":
			b.is1904 = isTrue(attribute(t, "date1904"))
		case "sheet":
			state := attribute(t, "state")
			s := Sheet{attribute(t, "name"), state != "" && state != "visible", ids[attribute(t, "id")]}
			if !strings.Contains(s.part, "chartsheets/") {
				b.Sheets = append(b.Sheets, s)
			}
		}
		return bound(len(b.Sheets), maxItems, "sheets")
	})
}

// readStyles finds the styles that show a number as a date.
func (b *Book) readStyles(part string) error {
	formats, inCells := map[string]bool{}, false
	for _, id := range []string{"14", "15", "16", "17", "18", "19", "20", "21", "22", "45", "46", "47"} {
		formats[id] = true
	}
	return b.each(part, func(t xml.StartElement) error {
		switch t.Name.Local {
		case "numFmt":
			formats[attribute(t, "numFmtId")] = isDateFormat(attribute(t, "formatCode"))
		case "cellXfs", "cellStyleXfs", "cellStyles", "dxfs":
			inCells = t.Name.Local == "cellXfs"
		case "xf":
			if inCells {
				b.isDate = append(b.isDate, formats[attribute(t, "numFmtId")])
			}
		}
		return bound(len(b.isDate)+len(formats), maxItems, "styles")
	})
}

// readTexts reads the shared texts.
func (b *Book) readTexts(part string) error {
	s, err := b.open(part)
	if err != nil {
		return err
	}
	defer s.Close()
	var text cellText
	for {
		token, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := text.take(token); err != nil {
			return err
		}
		if end, ok := token.(xml.EndElement); ok && end.Name.Local == "si" {
			b.texts = append(b.texts, text.text...)
			b.textEnds = append(b.textEnds, len(b.texts))
			text = cellText{text: text.text[:0]}
			if err := errors.Join(bound(len(b.texts), maxStrings, "bytes of texts"),
				bound(len(b.textEnds), maxItems, "texts")); err != nil {
				return err
			}
		}
	}
}

func bound(got, most int, things string) error {
	if got > most {
		return fmt.Errorf("the file has too many %s: at most %d are read", things, most)
	}
	return nil
}

// scanner reads the tokens of a part.
type scanner struct {
	io.Closer
	part string
	xml  *xml.Decoder
	deep int              // elements that are open
	in   io.LimitedReader // its limit is that of a token
	all  io.LimitedReader // its limit is that of the part
}

func (b *Book) open(part string) (*scanner, error) {
	file := b.parts[strings.ToLower(part)]
	if file == nil {
		return nil, errForm
	}
	in, err := file.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errForm, err)
	}
	s := &scanner{Closer: in, part: part}
	s.all = io.LimitedReader{R: in, N: maxPart}
	s.in = io.LimitedReader{R: &s.all}
	s.xml = xml.NewDecoder(&s.in)
	return s, nil
}

// The method `next` returns io.EOF after the last token. A part that declares entities is refused.
func (s *scanner) next() (xml.Token, error) {
	s.in.N = maxToken
	token, err := s.xml.Token()
	switch token.(type) {
	case xml.Directive:
		return nil, fmt.Errorf("%s has a document type: %w", s.part, errForm)
	case xml.StartElement:
		s.deep++
	case xml.EndElement:
		s.deep--
	}
	if err := bound(s.deep, maxDeep, "elements in one another"); err != nil {
		return nil, err
	}
	switch {
	case s.all.N <= 0:
		return nil, fmt.Errorf("%s unpacks to more than %d bytes", s.part, maxPart)
	case s.in.N <= 0:
		return nil, fmt.Errorf("%s has a text of more than %d bytes", s.part, maxToken)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w: %w", s.part, errForm, err)
	}
	return token, err
}

// each calls the function `take` with each start of an element of a part.
func (b *Book) each(part string, take func(xml.StartElement) error) error {
	s, err := b.open(part)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		token, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if start, ok := token.(xml.StartElement); ok && err == nil {
			err = take(start)
		}
		if err != nil {
			return err
		}
	}
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func isTrue(value string) bool { return value == "1" || value == "true" }
