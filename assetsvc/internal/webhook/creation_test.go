package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func withFilters(filters record.Object) record.Object {
	return record.Object{{Name: "url", Value: address}, {Name: "filters", Value: filters}}
}

// TestAWebhookKeepsWhatItsCreationAsksFor creates webhooks and reads what the store has. Each stored webhook must
// have all that its creation asked for. For example, a webhook that lost its filters would get all assets.
func TestAWebhookKeepsWhatItsCreationAsksFor(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		sent          record.Object
		whole         bool
		mode, filters string
	}{
		{object("url", address), false, "", ""},
		{object("url", address, "opt_fields", "*", "mode", "_all_"), true, "_all_", ""},
		{withFilters(record.Object{{Name: "owner", Value: "b2"}, {Name: "region", Value: record.List{"Київ", "Одеська"}}}),
			false, "", `{"owner":["b2"],"region":["Київ","Одеська"]}`},
	} {
		created, _, err := b.Create(t.Context(), b1, webhook.Creation{Fields: c.sent, Version: "2.5"})
		expect.OK(t, err)
		e, err := b.store.Endpoint(t.Context(), created.ID)
		if err != nil || e.Whole != c.whole || e.Mode != c.mode || e.Filters != c.filters {
			t.Errorf("got whole %t, mode %q, filters %s, %v; want %t, %q, %s", e.Whole, e.Mode, e.Filters, err,
				c.whole, c.mode, c.filters)
		}
	}
}

// TestEachFaultOfAFilterIsTold compares the descriptions of the faults, and not only the names of the fields: a
// field may be wrong in several ways.
func TestEachFaultOfAFilterIsTold(t *testing.T) {
	b := newBench(t)
	faults := func(err error) []fault.Detail {
		f, _ := errors.AsType[*fault.Error](err)
		if f == nil {
			return nil
		}
		return f.Details
	}
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{"owner", record.List{"b2", true}, "This must be a list of strings."},
		{"owner", record.Object{}, "This must be a list of strings."},
		{"owner", record.List{}, "A filter needs a value."},
		{"owner", record.List{" "}, "A filter needs a value."},
		{"status", record.List{"sold"}, "must be one of"},
	} {
		sent := withFilters(record.Object{{Name: c.name, Value: c.value}})
		_, _, err := b.Create(t.Context(), b1, webhook.Creation{Fields: sent, Version: "2.5"})
		got := faults(err)
		if len(got) != 1 || got[0].Name != "filters."+c.name || !strings.Contains(got[0].Description, c.want) {
			t.Errorf("%s %v: got the faults %v, want one with %q", c.name, c.value, got, c.want)
		}
	}
	var values record.List
	for n := range assetfilter.MaxTotal / assetfilter.MaxValue {
		values = append(values, strings.Repeat(string(rune('а'+n)), assetfilter.MaxValue))
	}
	sent := withFilters(record.Object{{Name: "region", Value: values}})
	if _, _, err := b.Create(t.Context(), b1, webhook.Creation{Fields: sent, Version: "2.5"}); err != nil {
		t.Errorf("filters with %d characters, the most: got %v, want no fault", assetfilter.MaxTotal, err)
	}
	var rogue record.Object
	for n := range 600 {
		rogue = append(rogue, record.Member{Name: fmt.Sprint("x", n), Value: "x"})
	}
	_, _, err := b.Create(t.Context(), b1, webhook.Creation{Fields: rogue, Version: "2.5"})
	expect.Equal(t, len(faults(err)), 500, "600 rogue fields: faults")
}

// TestFieldsThatAWebhookLacksAreRefused sends unknown fields with each request that has a body. Nothing must
// change.
func TestFieldsThatAWebhookLacksAreRefused(t *testing.T) {
	b := newBench(t)
	id, rogue := b.mustCreate(t, b1).ID, object("ulr", address)
	_, changed := b.Change(t.Context(), b1, id, object("ulr", address, "state", "disabled"))
	_, replayed := b.Replay(t.Context(), b1, id, rogue)
	_, _, rotated := b.Rotate(t.Context(), b1, id, rogue)
	for does, err := range map[string]error{"change": changed, "replay": replayed, "rotate": rotated} {
		expect.ErrorIf(t, kindOf(err) != fault.Invalid, "%s: got %v, want a fault of kind Invalid", does, err)
	}
	if e, err := b.store.Endpoint(t.Context(), id); err != nil || e.Generation != 1 || e.State != webhook.Unverified {
		t.Errorf("got generation %d and state %q, %v; want no change", e.Generation, e.State, err)
	}
}

// failing is a store whose Put returns each error of the list `errs` once, and then works.
type failing struct {
	webhook.Store
	errs []error
}

func (f *failing) Put(ctx context.Context, e webhook.Endpoint) error {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return err
	}
	return f.Store.Put(ctx, e)
}

func TestAStoreThatFailsIsNotAFullOne(t *testing.T) {
	b := newBench(t)
	crowd := b.store.(*crowded)
	store := &failing{Store: crowd.Store}
	crowd.Store = store
	in := webhook.Creation{Fields: object("url", address), Version: "2.5", Seeds: [][]byte{[]byte("seed")}}
	store.errs = []error{errors.New("the disk is broken")}
	if _, _, err := b.Create(t.Context(), b1, in); kindOf(err) != fault.Unavailable {
		t.Errorf("a broken store: got %v, want a fault of kind Unavailable", err)
	}
	store.errs = []error{webhook.ErrStale}
	if _, _, err := b.Create(t.Context(), b1, in); err != nil {
		t.Errorf("another process has stored one at this moment: got %v, want no fault", err)
	}
}
