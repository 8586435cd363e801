package copystore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/testing/expect"
)

// memory is a Copy that keeps assets in memory, in the order of their positions.
type memory struct {
	assets []Asset
	upto   int64
}

func (m *memory) Feed(q Query, visit func(Asset) bool) (int64, error) {
	all := slices.Clone(m.assets)
	if q.Descending {
		slices.Reverse(all)
	}
	for _, a := range all {
		after := a.Position > q.After
		if q.Descending {
			after = q.After == 0 || a.Position < q.After
		}
		if after && (a.Test && q.Test || !a.Test && q.Real) && !visit(a) {
			break
		}
	}
	return m.upto, nil
}

func (m *memory) Range(from string, visit func(Asset) bool) error {
	all := slices.Clone(m.assets)
	slices.SortFunc(all, func(a, b Asset) int { return strings.Compare(a.ID, b.ID) })
	for _, a := range all {
		if a.ID >= from && !visit(a) {
			return nil
		}
	}
	return nil
}

func (m *memory) Ready(context.Context) error { return nil }

// assetOf returns an asset at a position. Assets with greater positions have lower ids.
func assetOf(position int64, test bool) Asset {
	id := fmt.Sprintf("%032x", 100-position)
	return Asset{ID: id, Position: position, Test: test,
		Text: fmt.Appendf(nil, `{"id":%q,"dateModified":"2026-11-20T12:00:00.00000%d+02:00","n":%d}`, id, position, position)}
}

func newStore() *Store {
	return New(&memory{assets: []Asset{assetOf(1, false), assetOf(2, true), assetOf(4, false), assetOf(6, false)}, upto: 7})
}

func TestAnAssetIsStoredWithoutItsDateModified(t *testing.T) {
	s, id := newStore(), assetOf(4, false).ID
	got, err := s.Get(t.Context(), id, registry.AnySize)
	body := fmt.Appendf(nil, `{"id":%q,"n":4}`, id)
	want := registry.Record{ID: id, Position: 4, Revision: 1, Listed: true, Body: body}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	expect.ErrOf(t, registry.ErrLarge, "a body over the limit")(s.Get(t.Context(), id, len(want.Body)-1))
	want.Body = nil
	if got, err := s.Look(t.Context(), id, 0, nil); err != nil || !cmp.Equal(got, want) {
		t.Errorf("without its body: got %+v, %v; want %+v", got, err, want)
	}
	for _, id := range []string{assetOf(5, false).ID, "x", ""} {
		expect.ErrOf(t, registry.ErrNotFound, "id %q", id)(s.Get(t.Context(), id, registry.AnySize))
	}
}

func TestPagesAreCompleteUpToTheirEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		query registry.Query
		want  []int64
		upto  int64 // 0: not compared
	}{
		{"the first page", registry.Query{Limit: 2}, []int64{1, 4}, 4},
		{"the last page", registry.Query{Limit: 2, Offset: 4}, []int64{6}, 7},
		{"as many as there are", registry.Query{Limit: 3}, []int64{1, 4, 6}, 7},
		{"test assets", registry.Query{Limit: 2, Mode: registry.Test}, []int64{2}, 7},
		{"all assets", registry.Query{Limit: 3, Mode: registry.All}, []int64{1, 2, 4}, 4},
		{"descending", registry.Query{Limit: 2, Descending: true}, []int64{6, 4}, 0},
		{"descending from an offset", registry.Query{Limit: 2, Descending: true, Offset: 4}, []int64{1}, 0},
		{"the first body is over the limit", registry.Query{Limit: 2, Bodies: 1}, []int64{1}, 1},
		{"the horizon", registry.HorizonQuery(), nil, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := newStore().Page(t.Context(), c.query)
			var got []int64
			for _, e := range page.Entries {
				got = append(got, e.Position)
				if (e.Body != nil) != (c.query.Bodies > 0) {
					t.Errorf("got the body %s of %d, want one only if it was asked for", e.Body, e.Position)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil || c.upto != 0 && page.Upto != c.upto {
				t.Errorf("got %v up to %d, %v, want %v up to %d", got, page.Upto, err, c.want, c.upto)
			}
		})
	}
}

func TestARangeGoesOnWhereItEnded(t *testing.T) {
	s, from := newStore(), ""
	var got []int64
	for range 5 {
		page := expect.Get(s.Range(t.Context(), registry.RangeQuery{From: from, Limit: 2, Bytes: 1}))(t)
		if len(page.Entries) > 1 {
			t.Errorf("got %d assets, want at most the first one, which may have more bytes than asked for", len(page.Entries))
		}
		for _, e := range page.Entries {
			got = append(got, e.Position)
		}
		if from = page.Next; from == "" {
			break
		}
	}
	expect.NoDiff(t, cmp.Diff([]int64{6, 4, 2, 1}, got), "")
}

func TestATextThatIsNoneOfAListingIsAnError(t *testing.T) {
	a := assetOf(1, false)
	a.Text = []byte(`{"dateModified":"x","id":"` + a.ID + `"}`)
	s := New(&memory{assets: []Asset{a}, upto: 1})
	_, err1 := s.Get(t.Context(), a.ID, registry.AnySize)
	_, err2 := s.Page(t.Context(), registry.Query{Limit: 1, Bodies: 1})
	_, err3 := s.Range(t.Context(), registry.RangeQuery{Limit: 1})
	for _, err := range []error{err1, err2, err3} {
		expect.Err(t, err, errText, "")
	}
}

// TestACopyTakesNoWrites calls the methods that a copy does not support. They write, or read the record of changes
// or the assets of one owner.
func TestACopyTakesNoWrites(t *testing.T) {
	s, ctx := newStore(), t.Context()
	_, create := s.Create(ctx, registry.Record{})
	_, replace := s.Replace(ctx, registry.Record{})
	_, rewrite := s.Rewrite(ctx, registry.Revision{}, nil, nil)
	_, number := s.NextNumber(ctx, "2026-11-20")
	_, log := s.Log(ctx, "", registry.LogQuery{})
	_, changes := s.Changes(ctx, registry.ChangesQuery{})
	_, claim := s.ClaimReference(ctx, "key", "", "id")
	_, own := s.Page(ctx, registry.Query{Owner: "broker", Limit: 1})
	for i, err := range []error{create, replace, rewrite, number, log, changes, claim, own} {
		expect.Err(t, err, ErrReadOnly, "call %d", i)
	}
}
