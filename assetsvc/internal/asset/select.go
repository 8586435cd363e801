package asset

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/nearest"
)

// Selection names the parts of an asset that Select decodes. The zero Selection names none.
type Selection struct {
	Part  Part
	ID    string // all versions of the part with this id; "": all parts of the kind
	Scope Scope  // for all parts of the kind
}

// Select reads an asset from the output of Encode, and decodes only its id, number, title, status, owner and mode and
// the selected parts. The asset that it returns has no other fields. The work grows with the length of the body, the
// memory with the selected parts.
func Select(body []byte, s Selection) (Asset, error) {
	a := Asset{}
	for name, text := range record.Skim(body) {
		var value record.Value
		var err error
		switch string(name) {
		case "id", "assetID", "title", "status", "owner", "mode":
			value, err = record.Parse(text)
		case s.Part.field:
			value, err = s.list(text)
		default:
			continue
		}
		if err != nil {
			return Asset{}, fmt.Errorf("decode asset: field %s: %w", name, err)
		}
		a.fields = append(a.fields, record.Member{Name: string(name), Value: value})
	}
	if a.ID() == "" || a.Status() == "" {
		return Asset{}, errors.New("decode asset: the id or the status is missing")
	}
	return a, nil
}

// list decodes the selected elements of an encoded list of parts. Of a versioned part, the scope Newest selects the
// last version.
func (s Selection) list(encoded []byte) (record.List, error) {
	list := record.List{}
	var last map[string]int // the index of the last element with each id; nil: every element is selected
	if s.ID == "" && s.Scope == Newest && s.Part.Versioned() {
		last = map[string]int{}
		for i, element := range numbered(encoded) {
			last[string(idText(element))] = i
		}
	}
	for i, element := range numbered(encoded) {
		switch id := idText(element); {
		case s.ID != "" && string(id) != s.ID:
			continue
		case last != nil && last[string(id)] != i:
			continue
		}
		value, err := record.Parse(element)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// numbered iterates over the elements of an encoded list, with their indexes.
func numbered(encoded []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		i := 0
		for _, element := range record.Skim(encoded) {
			if !yield(i, element) {
				return
			}
			i++
		}
	}
}

// idText returns the id of an encoded part. It returns nil if the part has no id.
func idText(encoded []byte) []byte {
	for name, value := range record.Skim(encoded) {
		switch {
		case string(name) != "id" || len(value) < len(`""`) || value[0] != '"':
			continue
		case bytes.IndexByte(value, '\\') < 0:
			return value[1 : len(value)-1]
		}
		id, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return nil
		}
		return id
	}
	return nil
}

// maxNearest is the maximum number of searches for a nearest value in one request. It limits the time that such a
// request can take.
const maxNearest = 50

const theNearest = ": the nearest is '%s'"

// nearest returns the end of an error text. This end suggests the value in a list that is nearest to the sent value.
// For an empty list, and after maxNearest searches, nearest returns "".
func (w *walk) nearest(sent string, of []string) string {
	if w.compared >= maxNearest || len(of) == 0 {
		return ""
	}
	w.compared++
	return fmt.Sprintf(theNearest, nearest.To(sent, of))
}

// The method `near` does the same as nearest. It also returns "" if no value of the list is so similar to the sent
// value that the client may have meant it.
func (w *walk) near(sent string, of []string) string {
	if w.compared >= maxNearest {
		return ""
	}
	w.compared++
	if best := nearest.Near(sent, of); best != "" {
		return fmt.Sprintf(theNearest, best)
	}
	return ""
}
