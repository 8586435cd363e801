package filesvc

import (
	"testing"

	"asset-registry/filesvc/internal/copier"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// copied is a copy of one asset.
type copied string

func (c copied) Changes(int64, func(int64, string, []byte) bool) error { return nil }

func (c copied) Text(id string) ([]byte, error) {
	if id != "a" {
		return nil, nil
	}
	return []byte(c), nil
}

// TestAMirrorReadsDocumentsFromItsCopy reads the documents of an asset for an archive.
func TestAMirrorReadsDocumentsFromItsCopy(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"a","documents":[{"id":"1"},{"id":"2"}]}`: `[{"id":"1"},{"id":"2"}]`, `{"id":"a"}`: "",
	} {
		c := &Copies{copier: &copier.Copier{Config: copier.Config{Assets: copied(text)}}}
		got := expect.Get(c.documents(t.Context(), "", "a"))(t)
		expect.Equal(t, string(got), want, "%s", text)
		if _, err := c.documents(t.Context(), "", "b"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("an asset that the copy lacks: got %v, want a fault of kind NotFound", err)
		}
	}
}
