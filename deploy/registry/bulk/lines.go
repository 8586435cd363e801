package bulk

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"asset-registry.example/client"
	"asset-registry/assetsvc/rehearse"
)

// lines reads a file that has one JSON object in each line: {"reference": ..., "data": {...}, "documents":
// [...]}.
type lines struct {
	in  *bufio.Reader
	row int
}

func newLines(in io.Reader) *lines { return &lines{in: bufio.NewReaderSize(in, 1<<16)} }

// line returns the next line that is not empty, or io.EOF after the last one.
func (l *lines) line() ([]byte, error) {
	for {
		l.row++
		text, err := l.raw()
		if l.row == 1 {
			if isUTF16(text) {
				return nil, errors.New("the file is UTF-16: save it as UTF-8")
			}
			text = bytes.TrimPrefix(text, utf8Mark)
		}
		text = bytes.TrimSpace(text)
		if len(text) > 0 && errors.Is(err, io.EOF) {
			err = nil // the next call returns io.EOF
		}
		if len(text) > 0 || err != nil {
			return text, err
		}
	}
}

// raw returns the bytes up to the end of the line.
func (l *lines) raw() (text []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > maxRow:
			return nil, errRow
		case !errors.Is(err, bufio.ErrBufferFull):
			return text, err
		}
	}
}

// The method `next` implements reader.
func (l *lines) next() (Row, []Fault, error) {
	text, err := l.line()
	row := Row{Number: l.row, column: func(path string) string { return path }}
	if errors.Is(err, io.EOF) {
		return row, nil, err
	}
	if err != nil {
		return row, []Fault{{Row: l.row, Text: err.Error()}}, errBroken
	}
	var object struct {
		Reference string            `json:"reference"`
		Data      json.RawMessage   `json:"data"`
		Documents []json.RawMessage `json:"documents"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&object); err != nil {
		return row, []Fault{{Row: l.row, Text: lineFault(err)}}, nil
	}
	if decoder.More() {
		return row, []Fault{{Row: l.row, Text: "the line has more than one JSON value"}}, nil
	}
	if faults := row.formFaults(text); len(faults) > 0 {
		return row, faults, nil
	}
	row.Reference, row.asset = WriteReference(object.Reference), object.Data
	if row.asset == nil {
		return row, []Fault{{Row: l.row, Column: "data", Text: "the line has no asset"}}, nil
	}
	if row.Asset, err = fieldsOf(object.Data); err != nil {
		return row, []Fault{{Row: l.row, Column: "data", Text: lineFault(err)}}, nil
	}
	for i, text := range object.Documents {
		d, err := document(text)
		if err != nil {
			return row, []Fault{{Row: l.row, Column: fmt.Sprintf("documents.%d", i), Text: lineFault(err)}}, nil
		}
		row.Documents = append(row.Documents, d)
	}
	return row, nil, nil
}

// formFaults returns the faults of the names in a line: those that occur twice, and those that a line does not have.
// The package json takes both for the members of a line, and the latter in any case of their letters.
func (r Row) formFaults(line []byte) (faults []Fault) {
	_, found := rehearse.Canonical(line)
	for _, f := range found {
		faults = append(faults, Fault{r.Number, f.Name, f.Text})
	}
	members, _ := fieldsOf(line) // the line is an object
	for _, name := range sortedKeys(members) {
		if !slices.Contains([]string{"reference", "data", documents}, name) {
			faults = append(faults, Fault{r.Number, name, "a line has reference, data and documents only"})
		}
	}
	return faults
}

// document parses one document of a line.
func document(text []byte) (d Document, err error) {
	if d.Fields, err = fieldsOf(text); err != nil {
		return d, err
	}
	if file, ok := d.Fields[fileField].(json.RawMessage); ok {
		err = json.Unmarshal(file, &d.File)
		delete(d.Fields, fileField)
	}
	return d, err
}

// fieldsOf parses a JSON object. It does not change the values.
func fieldsOf(text []byte) (client.Fields, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("this must be an object")
	}
	fields := client.Fields{}
	for name, value := range object {
		fields[name] = value
	}
	return fields, nil
}

// lineFault says what is wrong with the JSON of a line.
func lineFault(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s must not be a %s", cmp.Or(wrong.Field, "the line"), wrong.Value)
	}
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("the line is not JSON: it breaks off or has a fault near byte %d", broken.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the line is not JSON: it breaks off"
	}
	return err.Error()
}
