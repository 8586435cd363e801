package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Asset is an asset that was read for exports.
type Asset struct {
	line  []byte
	whole string     // the line
	rows  [][][]cell // rows of each table
}

// lenient accepts all JSON that the stores may have, as encoding/json does.
var lenient = jsontext.AllowInvalidUTF8(true)

// Read reads an asset from a line of JSON. The caller must not change the line afterwards. ok is false for an
// asset that no search finds: one in test mode, a deleted one, or a draft. A value of a wrong type is dropped.
func Read(line []byte) (a *Asset, ok bool, err error) {
	row := make([]cell, modePlace+1)
	a = &Asset{line: line, whole: string(line), rows: make([][][]cell, len(Tables))}
	d := jsontext.NewDecoder(bytes.NewBuffer(line), lenient, jsontext.AllowDuplicateNames(true))
	if err = a.read(d, root, row); err == nil {
		if _, err = d.ReadToken(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("there is more than one value")
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("read an asset: %w", err)
	}
	mode, status := row[modePlace].text, row[statusColumn].text
	for _, table := range []int{ofItems, ofDocuments} {
		row[lengthColumns[table]] = cell{text: strconv.Itoa(len(a.rows[table])), isNumber: true}
		for _, r := range a.rows[table] {
			r[0].text = row[idColumn].text
		}
	}
	if len(a.rows[ofItems]) > 0 {
		copy(row[lengthColumns[ofItems]+1:], a.rows[ofItems][0][2:]) // without the ids of the asset and the item
	}
	a.rows[ofAssets] = [][]cell{row[:modePlace]}
	return a, mode == "" && status != "deleted" && status != "draft", nil
}

// The indexes of columns of the table of assets.
var (
	idColumn      = Tables[ofAssets].index("id")
	statusColumn  = Tables[ofAssets].index("status")
	lengthColumns = []int{
		ofItems: Tables[ofAssets].index("items.length"), ofDocuments: Tables[ofAssets].index("documents.length"),
	}
)

func (t Table) index(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}

// read reads a value. The cells of its columns come into the row.
func (a *Asset) read(d *jsontext.Decoder, p *place, row []cell) error {
	switch k := d.PeekKind(); {
	case k == '[' && p.table != 0:
		return a.readList(d, p)
	case k == '{' && p.below != nil:
		return a.readObject(d, p, row)
	case p.below == nil && (k == '"' || k == '0' && p.kind != text):
		raw, err := d.ReadValue()
		if err == nil {
			row[p.column] = cellOf(p.kind, a.text(raw, int(d.InputOffset())))
		}
		return err
	}
	return d.SkipValue()
}

// text returns the text of a string or a number that ends at this byte of the line. It takes no memory of its own,
// unless the string has escapes.
func (a *Asset) text(raw jsontext.Value, end int) string {
	switch {
	case raw.Kind() == '0':
		return a.whole[end-len(raw) : end]
	case bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return a.whole[end-len(raw)+1 : end-1]
	}
	unquoted, _ := jsontext.AppendUnquote(nil, raw) // replaces invalid bytes; the error does not matter
	return string(unquoted)
}

// readList reads the elements of a list as rows of its table.
func (a *Asset) readList(d *jsontext.Decoder, p *place) error {
	a.rows[p.table] = nil
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	elements := &place{below: p.below}
	for d.PeekKind() != ']' {
		row := make([]cell, len(Tables[p.table].columns))
		if err := a.read(d, elements, row); err != nil {
			return err
		}
		a.rows[p.table] = append(a.rows[p.table], row)
	}
	_, err := d.ReadToken()
	return err
}

func (a *Asset) readObject(d *jsontext.Decoder, p *place, row []cell) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		below := p.below[string(name[1:len(name)-1])] // the stores escape no letters of names
		if below == nil {
			err = d.SkipValue()
		} else {
			err = a.read(d, below, row)
		}
		if err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}
