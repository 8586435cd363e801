package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// listOf decodes a list. If the list has more than `most` values, listOf returns an error and does not decode the rest,
// because a value of two bytes may take a thousand bytes in memory. If the text is empty or null, the result is nil.
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
	return list, nil // the end of the list needs no check, because the text is a part of valid JSON
}
