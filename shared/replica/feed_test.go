package replica

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry.example/client"

	"asset-registry/shared/testing/expect"
)

// withModes returns a copy that is complete up to second 150. The assets at the even seconds before 150 are in test
// mode. One asset is newer than the copy's position, at second 160: files of a snapshot may bring newer assets.
func withModes(t *testing.T) *Replica {
	t.Helper()
	r := open(t, t.TempDir())
	c := Change{State: State{Complete: true, Position: client.Position{Offset: client.Timestamp(stampOf(150))}}}
	for _, second := range []int{101, 102, 103, 104, 105, 160} {
		mode := ""
		if second%2 == 0 && second != 160 {
			mode = `,"mode":"test"`
		}
		e, err := parseEntry(fmt.Appendf(nil, `{"id":%q,"dateModified":%q%s}`, idOf(1000-second), stampOf(second), mode))
		expect.OK(t, err)
		c.Entries = append(c.Entries, e)
	}
	expect.OK(t, r.Apply(c))
	expect.Get(r.Check())(t)
	return r
}

func TestAFeedHasTheAssetsOfItsModesUpToThePosition(t *testing.T) {
	r := withModes(t)
	for _, c := range []struct {
		name  string
		query FeedQuery
		want  []int64
	}{
		{"real assets", FeedQuery{Real: true}, []int64{101, 103, 105}},
		{"test assets", FeedQuery{Test: true}, []int64{102, 104}},
		{"all", FeedQuery{Real: true, Test: true, Texts: true}, []int64{101, 102, 103, 104, 105}},
		{"after a position", FeedQuery{Real: true, Test: true, After: 103e6}, []int64{104, 105}},
		{"between two positions", FeedQuery{Real: true, After: 102e6}, []int64{103, 105}},
		{"after the end", FeedQuery{Real: true, After: 105e6}, nil},
		{"descending", FeedQuery{Real: true, Test: true, Descending: true, Texts: true}, []int64{105, 104, 103, 102, 101}},
		{"descending from a position", FeedQuery{Real: true, Descending: true, After: 105e6}, []int64{103, 101}},
		{"descending from after the end", FeedQuery{Test: true, Descending: true, After: 900e6}, []int64{104, 102}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int64
			upto, err := r.Feed(c.query, func(e Entry) bool {
				got = append(got, e.Position/1e6)
				second := int(e.Position / 1e6)
				if (len(e.JSON) > 0) != c.query.Texts || e.ID != idOf(1000-second) || e.Test != (second%2 == 0) {
					t.Errorf("got %+v, want the asset of its position, with a text if it was asked for", e)
				}
				return true
			})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil || upto != 150e6 {
				t.Errorf("got %v up to %d, %v, want %v up to %d", got, upto, err, c.want, int64(150e6))
			}
		})
	}
}

func TestFromGoesOnAtAnID(t *testing.T) {
	r := withModes(t)
	for from, want := range map[string]int{"": 6, idOf(1000 - 103): 3, idOf(2000): 0, "x": 6} {
		got := 0
		if err := r.From(from, func(Entry) bool { got++; return true }); err != nil || got != want {
			t.Errorf("from %q: got %d, %v, want %d", from, got, err, want)
		}
	}
}
