package file

import (
	"fmt"
	"slices"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// TestLists lists the files of two brokers, from the first page to the last one. Each file must come once, in
// order. No call may read more files than lookedAt, and the calls must not be more than needed.
func TestLists(t *testing.T) {
	b := newBench()
	const all = lookedAt + 3*page
	for i := range all {
		f := File{ID: fmt.Sprintf("%032x", i), Broker: another.Broker, State: Stored}
		switch {
		case i == 1:
			f.State = Collected
		case i%600 == 2:
			f.Broker = broker.Broker
		}
		b.memory.files[f.ID] = f
	}
	for _, c := range []struct {
		name   string
		by     identity.Identity
		broker string
		files  int
	}{
		{"a broker's own", broker, "", 3},
		{"the same by name", broker, broker.Broker, 3},
		{"all", admin, "", all - 1},
		{"one broker's for the administrator", admin, broker.Broker, 3},
		{"nobody's", admin, "nobody", 0},
	} {
		var ids []string
		calls := 0
		for after := ""; ; {
			calls++
			pages := 0
			b.memory.step = func(string) error { pages++; return nil }
			found, next, err := b.List(t.Context(), c.by, c.broker, after, MaxList)
			if err != nil || len(found) > MaxList || next != "" && next <= after || pages > lookedAt/page {
				t.Fatalf("%s: got %d files of %d pages, next %q after %q, %v", c.name, len(found), pages, next, after, err)
			}
			for _, f := range found {
				ids = append(ids, f.ID)
			}
			if after = next; after == "" {
				break
			}
		}
		if len(ids) != c.files || !slices.IsSorted(ids) || len(slices.Compact(ids)) != c.files ||
			calls > c.files/MaxList+all/lookedAt+1 {
			t.Errorf("%s: got %d files in %d calls, want %d, each once and in order", c.name, len(ids), calls, c.files)
		}
	}
	if _, _, err := b.List(t.Context(), broker, another.Broker, "", 1); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("another broker's: got %v, want Forbidden", err)
	}
}

// TestRemovalsAreListed lists the removals of files, two at a time. Each id must come once, in order, and only the
// last list says that no more follow.
func TestRemovalsAreListed(t *testing.T) {
	b := newBench()
	var want, got []string
	for i := range 5 {
		f := File{ID: fmt.Sprintf("%032x", i), State: Removed}
		must(t, f, b.memory.NoteRemoval(t.Context(), f))
		want = append(want, f.ID)
	}
	for after := ""; ; {
		ids, next, err := b.ListRemoved(t.Context(), after, 2)
		got = append(got, must(t, ids, err)...)
		if len(ids) > 2 || next != "" && next != ids[len(ids)-1] {
			t.Fatalf("got %q and next %q, want two ids and the last of them", ids, next)
		}
		if after = next; next == "" {
			break
		}
	}
	expect.ErrorIf(t, !slices.Equal(got, want), "got %q, want %q", got, want)
}
