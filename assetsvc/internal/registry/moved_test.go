package registry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// behind is a store whose horizon does not move. The test says which pages it returns.
type behind struct {
	registry.Store
	pages   []registry.FeedPage // the pages of the first calls; all later calls return the last page
	asked   int
	entered int64  // Record.Entered of listed assets
	leave   func() // called when a page is asked for; nil: not called
}

func (b *behind) Get(ctx context.Context, id string, most int) (registry.Record, error) {
	r, err := b.Store.Get(ctx, id, most)
	if r.Listed {
		r.Entered = b.entered
	}
	return r, err
}

func (b *behind) Page(context.Context, registry.Query) (registry.FeedPage, error) {
	page := b.pages[min(b.asked, len(b.pages)-1)]
	b.asked++
	if b.leave != nil {
		b.leave()
	}
	return page, nil
}

// TestAMovedAssetIsShownAsItWas lists an asset 20 times, each time at the position of a different change. Each entry
// must have the asset as it was after this change.
func TestAMovedAssetIsShownAsItWas(t *testing.T) {
	r, store, keys, id := open(t)
	var page registry.FeedPage
	var want []string
	for i := range 20 {
		fields := fmt.Sprintf(`{"title":"title %d"}`, i)
		changed := expect.Get(r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, fields)}))(t)
		want = append(want, string(changed.Body))
		page.Entries = append(page.Entries, registry.Entry{ID: id, Position: changed.Position, Moved: true})
	}
	page.Upto = page.Entries[19].Position
	lists := registry.New(&behind{Store: store, pages: []registry.FeedPage{page}}, keys, plainRules, time.Now)
	got := expect.Get(lists.List(t.Context(), registry.Query{Limit: 20, Bodies: 1 << 20}))(t)
	if len(got.Entries) != 16 || got.Upto != got.Entries[15].Position {
		t.Errorf("got %d entries up to %d, want 16 up to the last", len(got.Entries), got.Upto)
	}
	for i, e := range got.Entries {
		if !record.Equal(parse(t, want[i]), parse(t, string(e.Body))) {
			t.Errorf("entry %d: got %s, want %s", i, e.Body, want[i])
		}
	}
}

// TestAnErasedAssetIsShownAsItIs lists an asset at the position of an older revision, whose content was erased. The
// entry must have the body of the newest revision instead.
func TestAnErasedAssetIsShownAsItIs(t *testing.T) {
	r, store, keys, id := open(t)
	var first, last registry.Record
	for i, at := range []*registry.Record{&first, &last} {
		var err error
		fields := fmt.Sprintf(`{"title":"title %d"}`, i)
		*at, err = r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, fields)})
		expect.OK(t, err)
	}
	expect.Get(r.Erase(t.Context(), admin, id, first.Revision))(t)
	page := registry.FeedPage{Entries: []registry.Entry{{ID: id, Position: first.Position, Moved: true}}}
	lists := registry.New(&behind{Store: store, pages: []registry.FeedPage{page}}, keys, plainRules, time.Now)
	got, err := lists.List(t.Context(), registry.Query{Limit: 20, Bodies: 1 << 20})
	if err != nil || string(got.Entries[0].Body) != string(last.Body) {
		t.Errorf("got %v, %v; want the newest body", got.Entries, err)
	}
}

// TestAPublicationIsAcknowledgedWhenItIsListed publishes an asset while the horizon is below the new position.
// The answer must wait until the horizon reaches that position.
func TestAPublicationIsAcknowledgedWhenItIsListed(t *testing.T) {
	for _, c := range []struct {
		name  string
		pages []registry.FeedPage
		asked int
		fails bool
	}{
		{"the horizon comes", []registry.FeedPage{{Upto: 1}, {Upto: 1}, {Upto: 1 << 62}}, 3, false},
		{"the horizon never comes", []registry.FeedPage{{Upto: 1}}, 2, true},
	} {
		_, store, keys, id := open(t)
		s := &behind{Store: store, pages: c.pages}
		r := registry.New(s, keys, plainRules, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		if c.fails {
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		}
		_, err := r.Change(ctx, owner, id, "token", registry.Input{Fields: parse(t, `{"status":"pending"}`)})
		cancel()
		if (fault.KindOf(err) == fault.Unavailable) != c.fails || !c.fails && err != nil {
			t.Errorf("%s: got %v, want a failure: %v", c.name, err, c.fails)
		}
		if s.asked < c.asked {
			t.Errorf("%s: the store was asked %d times, want %d at least", c.name, s.asked, c.asked)
		}
		asked := s.asked
		_, err = r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"title":"another"}`)})
		if err != nil || s.asked != asked {
			t.Errorf("%s: a change of a listed asset: got %v after %d looks, want none", c.name, err, s.asked-asked)
		}
	}
}

// TestAChangeIsAcknowledgedWhenTheListHasTheAsset publishes an asset while the horizon is below the new
// position. The client gets no answer. Then the client repeats the request, or makes another change. The answer
// must wait until the list has the asset.
// Promises: feed-whole
func TestAChangeIsAcknowledgedWhenTheListHasTheAsset(t *testing.T) {
	for _, c := range []struct{ name, fields string }{
		{"the same again", `{"status":"pending"}`},
		{"the same with another text", `{"status":"pending","title":"another"}`},
		{"another text", `{"title":"another"}`},
	} {
		_, store, keys, id := open(t)
		s := &behind{Store: store, pages: []registry.FeedPage{{Upto: 1}}}
		r := registry.New(s, keys, plainRules, time.Now)
		change := func(fields string) error {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			s.leave = leave // the client gives up as soon as it waits for the list
			_, err := r.Change(ctx, owner, id, "token", registry.Input{Fields: parse(t, fields)})
			return err
		}
		if err := change(`{"status":"pending"}`); fault.KindOf(err) != fault.Unavailable {
			t.Fatalf("%s: the publication: got %v, want a fault of kind Unavailable", c.name, err)
		}
		published := expect.Get(store.Get(t.Context(), id, registry.AnySize))(t)
		s.entered = published.Position
		if err := change(c.fields); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: got %v before the list has the asset, want a fault of kind Unavailable", c.name, err)
		}
		s.pages[0].Upto = published.Position
		if err := change(c.fields); err != nil {
			t.Errorf("%s: got %v once the list has the asset, want nil", c.name, err)
		}
	}
}

// TestAnAssetEntersAnotherListWhenThatHasIt turns a real asset into a test asset while the horizon is below the
// new position. The answer must wait until the horizon reaches that position.
func TestAnAssetEntersAnotherListWhenThatHasIt(t *testing.T) {
	r, store, keys, id := open(t)
	_, err := r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"status":"pending"}`)})
	expect.OK(t, err)
	s := &behind{Store: store, pages: []registry.FeedPage{{Upto: 1}, {Upto: 1}, {Upto: 1 << 62}}}
	r = registry.New(s, keys, plainRules, time.Now)
	_, err = r.Change(t.Context(), admin, id, "", registry.Input{Fields: parse(t, `{"mode":"test"}`)})
	if err != nil || s.asked != 3 {
		t.Errorf("got %v after %d looks, want nil after 3", err, s.asked)
	}
}
