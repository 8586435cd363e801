package filelink

import (
	"encoding/json"
	"fmt"
	"path"
)

// Document has the facts about a file that a document of an asset states.
type Document struct {
	URL    string
	Hash   string // "md5:" and 32 hexadecimal digits, or a hash of another kind
	SHA256 string // "": the registry does not keep the file, or its bytes have not come
	Size   int64
}

// File returns the id of the file that a document names. isKept is false if the registry does not keep the file,
// or if the bytes of the file have not come. File sees this from the SHA-256 of the document, which the registry
// sets only for the bytes that it keeps.
func (d Document) File() (id string, isKept bool) {
	id = path.Base(d.URL)
	return id, d.SHA256 != "" && IsID(id)
}

// Documents returns the documents of an asset, also the documents of its parts.
func Documents(asset []byte) (found []Document, err error) {
	var value any
	if err := json.Unmarshal(asset, &value); err != nil {
		return nil, err
	}
	var walk func(value any) error
	walk = func(value any) error {
		switch v := value.(type) {
		case []any:
			for _, element := range v {
				if err := walk(element); err != nil {
					return err
				}
			}
		case map[string]any:
			for name, element := range v {
				if err := walk(element); err != nil {
					return err
				}
				if _, isList := element.([]any); !isList || name != "documents" {
					continue
				}
				text, err := json.Marshal(element)
				if err != nil {
					return err
				}
				var documents []Document
				if err := json.Unmarshal(text, &documents); err != nil {
					return fmt.Errorf("its documents: %w", err)
				}
				found = append(found, documents...)
			}
		}
		return nil
	}
	return found, walk(value)
}
