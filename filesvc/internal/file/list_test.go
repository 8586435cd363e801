package file

import (
	"fmt"
	"slices"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// TestLists lists the files of two brokers, from the first page to the last one. Each file must come once, in
// order.
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
		for after := ""; ; calls++ {
			found, next, err := b.List(t.Context(), c.by, c.broker, after, MaxList)
			if err != nil || len(found) > MaxList || next != "" && next <= after {
				t.Fatalf("%s: got %d files, next %q after %q, %v", c.name, len(found), next, after, err)
			}
			for _, f := range found {
				ids = append(ids, f.ID)
			}
			if after = next; after == "" {
				break
			}
		}
		if len(ids) != c.files || !slices.IsSorted(ids) || len(slices.Compact(ids)) != c.files {
			t.Errorf("%s: got %d files in %d calls, want %d, each once and in order", c.name, len(ids), calls, c.files)
		}
	}
	if _, _, err := b.List(t.Context(), broker, another.Broker, "", 1); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("another broker's: got %v, want Forbidden", err)
	}
}
