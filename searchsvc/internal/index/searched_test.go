package index

import (
	"encoding/json"
	"slices"
	"testing"

	"asset-registry/shared/assetfields"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/ukrainian"
)

// TestSearchesFindTheWordsOfTheFieldsThatSayIt reads, for each field of the list, an asset with a word in this field
// only. The index must have the word exactly if the row of the field says so.
func TestSearchesFindTheWordsOfTheFieldsThatSayIt(t *testing.T) {
	const id, word = "0123456789abcdef0123456789abcdef", "98765432"
	var want []string
	ukrainian.Each(word, 1, func(term string) { want = append(want, term) })
	assetfields.Asset.Each(func(rows []assetfields.Field) {
		searched := true
		var value any = word
		if last := rows[len(rows)-1]; last.Kind == assetfields.Quantity {
			value = json.Number(word)
		}
		for _, f := range slices.Backward(rows) {
			searched = searched && f.Search != 0
			if f.Is.Has(assetfields.List) {
				value = []any{value}
			}
			value = map[string]any{f.Name: value}
		}
		a, wanted := value.(map[string]any), want
		if a["id"] == nil {
			a["id"] = id
		} else {
			a["id"], wanted = id, []string{id}
		}
		text := expect.Get(json.Marshal(a))(t)
		read, err := parse(replica.Entry{ID: id, JSON: text})
		if err != nil {
			return // a field of a type that the index reads otherwise, such as size
		}
		terms, _, err := read.fields(1)
		expect.OK(t, err)
		if got := slices.Contains(terms[wordField], wanted[0]); got != searched {
			t.Errorf("%s: searches find its words: got %t, want %t, as the list of fields says", assetfields.Path(rows), got, searched)
		}
	})
}
