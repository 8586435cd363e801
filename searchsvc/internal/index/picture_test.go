package index

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// TestAHitHasThePictureOfItsAsset searches for an asset whose documents change, and then for a second asset in the
// same index. Each hit must have the first illustration of its own asset and their number, or no picture.
func TestAHitHasThePictureOfItsAsset(t *testing.T) {
	document := func(n int, more ...string) map[string]string {
		d := map[string]string{
			"id": fmt.Sprint(n), "documentType": "illustration", "title": "Фасад", "format": "image/jpeg",
			"url": "https://registry.example/get/" + idOf(n), "sha256": strings.Repeat("b", 64),
		}
		for i := 0; i < len(more); i += 2 {
			d[more[i]] = more[i+1]
		}
		return d
	}
	x := openIndex(t, t.TempDir())
	defer x.Close()
	at, numbers := int64(0), map[string]int{}
	put := func(n int, documents ...map[string]string) (pictures map[string]string) {
		t.Helper()
		at++
		text := expect.Get(json.Marshal(map[string]any{
			"id": idOf(n), "status": "active", "title": "Дім", "dateModified": stamp(at), "documents": documents,
		}))(t)
		entries := []replica.Entry{{ID: idOf(n), Position: at, JSON: text}}
		expect.OK(t, x.Apply(replica.Change{Entries: entries, State: stateAt(at)}))
		pictures = map[string]string{}
		for _, h := range mustSearch(t, x, search.Query{Text: "дім", Limit: 10}).Hits {
			pictures[h.ID] = h.Picture
			numbers[h.ID] = h.Pictures
			if strings.Contains(string(h.Asset), "registry.example") {
				t.Errorf("got the hit %s, want no document in it", h.Asset)
			}
		}
		return pictures
	}
	for _, c := range []struct {
		name      string
		documents []map[string]string
		want      string
		number    int
	}{
		{"no document", nil, "", 0},
		{"two illustrations", []map[string]string{document(1, "documentType", "notice"), document(2), document(3)}, idOf(2), 2},
		{"another file", []map[string]string{document(1, "format", "application/pdf"), document(2, "url", "https://b.example/x")}, "", 0},
		{"a file that has not come", []map[string]string{document(2, "sha256", ""), document(3)}, idOf(3), 1},
		{"a newer version", []map[string]string{document(2, "id", "7"), document(3, "id", "7"), document(4)}, idOf(3), 2},
		{"a newer version that is none", []map[string]string{document(2, "id", "7"), document(3, "id", "7", "documentType", "notice")}, "", 0},
	} {
		if got := put(8, c.documents...); got[idOf(8)] != c.want || numbers[idOf(8)] != c.number {
			t.Errorf("%s: got the picture %q of %d, want %q of %d", c.name, got[idOf(8)], numbers[idOf(8)], c.want, c.number)
		}
	}
	if got := put(9, document(5)); got[idOf(8)] != "" || got[idOf(9)] != idOf(5) {
		t.Errorf("got the pictures %q, want one of the second asset only", got)
	}
}
