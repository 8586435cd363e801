package assetfilter

import (
	"encoding/json"
	"fmt"
	"slices"

	"asset-registry/shared/errs"
)

// Set is a list of conditions. An asset meets the set if it meets all of them. The zero value has no conditions, so
// every asset meets it. A set is safe for concurrent use.
type Set struct{ conditions [][]string } // each condition is a list of terms, of which an asset needs one

// Encode returns the values of all filters as one text. The values come from Filter.Read. Their order does not
// change the text; without values the text is "".
func Encode(values map[Name][]string) (string, error) {
	kept := map[Name][]string{}
	for name, list := range values {
		if len(list) > 0 {
			kept[name] = slices.Sorted(slices.Values(list))
		}
	}
	if len(kept) == 0 {
		return "", nil
	}
	text, err := json.Marshal(kept)
	return string(text), err
}

// Decode returns the values of each filter from a text that Encode has returned.
func Decode(text string) (values map[Name][]string, err error) {
	if text == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &values)
	return values, errs.In(err, "read filters")
}

// Parse returns the set for a text that Encode has returned. Another version of the program may have stored a filter
// or a value that this version does not know. Parse then returns an error. It does not ignore the filter, because the
// set would then select too many assets.
func Parse(text string) (s Set, err error) {
	values, err := Decode(text)
	if err != nil {
		return s, err
	}
	for name, list := range values {
		f, known := Find(name)
		if !known {
			return Set{}, fmt.Errorf("read filters: there is no filter %.50q", name)
		}
		read, fault := f.Read(list)
		if fault != "" {
			return Set{}, fmt.Errorf("read filter %s: %s", name, fault)
		}
		var terms []string
		for _, value := range read {
			for _, term := range f.Terms(value) {
				terms = append(terms, termOf(name, term))
			}
		}
		s.conditions = append(s.conditions, terms)
	}
	return s, nil
}

// IsEmpty reports whether the set has no conditions, so that every asset meets it.
func (s Set) IsEmpty() bool { return len(s.conditions) == 0 }

// Meets reports whether an asset that has these terms (from Terms) meets all conditions.
func (s Set) Meets(terms []string) bool {
	for _, wanted := range s.conditions {
		has := func(term string) bool {
			_, found := slices.BinarySearch(terms, term)
			return found
		}
		if !slices.ContainsFunc(wanted, has) {
			return false
		}
	}
	return true
}
