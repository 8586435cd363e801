package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// listOf decodes a list. It refuses one of more than most values before it decodes the rest:
// a value of two bytes may become one of a thousand. The list is nil if text is empty or null.
func listOf[T any](text []byte, most int) ([]T, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	in := json.NewDecoder(bytes.NewReader(text))
	if start, err := in.Token(); err != nil || start != json.Delim('[') {
		return nil, errors.Join(errors.New("it has no list"), err)
	}
	list := []T{}
	for in.More() {
		if len(list) == most {
			return nil, fmt.Errorf("its list has more than %d values", most)
		}
		var value T
		if err := in.Decode(&value); err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil // the whole text is JSON: it was a part of a decoded one
}
