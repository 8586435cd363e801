package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

var begun = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// memory is a log with one entry for each hour. It counts the entries that it returns.
type memory struct {
	entries []adminapi.Entry
	read    int
	most    int // maximum number of entries that one call returned
}

func (m *memory) Head(context.Context) (adminapi.Head, error) {
	return adminapi.Head{Seq: int64(len(m.entries))}, nil
}

func (m *memory) Entries(_ context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	from := min(int(after), len(m.entries))
	found := m.entries[from:min(from+limit, len(m.entries))]
	m.read, m.most = m.read+len(found), max(m.most, len(found))
	return found, nil
}

// newMemory returns a log of n entries. Every tenth entry is about the broker acme, and every third of these is
// about one of the broker's keys.
func newMemory(n int) *memory {
	m := &memory{}
	for i := range n {
		e := adminapi.Entry{
			Seq: int64(i + 1), Time: begun.Add(time.Duration(i) * time.Hour), Who: "key-1 Olha", From: "192.0.2.1",
			Action: "key.create", Subject: fmt.Sprint("key key-", i), After: []byte(`{"name":"Виробництво","broker":"other"}`),
		}
		if i%10 == 0 {
			e.Action, e.Subject, e.After = "broker.change", "broker acme", []byte(`{"name":"acme","title":"ТОВ «Акме»"}`)
		}
		if i%30 == 0 {
			e.Who, e.From = "key-2 Petro", "2001:db8::1"
			e.Action, e.Subject = "key.revoke", fmt.Sprint("key key-", i)
			e.Before = []byte(`{"name":"old name","broker":"acme"}`)
			e.After = nil
		}
		m.entries = append(m.entries, e)
	}
	return m
}

func numbers(entries []adminapi.Entry) (all []int64) {
	for _, e := range entries {
		all = append(all, e.Seq)
	}
	return all
}

func TestASearchFindsWhatItsQuerySelects(t *testing.T) {
	log := newMemory(100)
	last := log.entries[99].Time
	for _, c := range []struct {
		name  string
		query audit.Query
		want  []int64
	}{
		{"name of the caller", audit.Query{Who: "PETRO"}, []int64{91, 61, 31, 1}},
		{"id of the caller", audit.Query{Who: "key-2"}, []int64{91, 61, 31, 1}},
		{"address of the caller", audit.Query{Who: "2001:db8"}, []int64{91, 61, 31, 1}},
		{"action", audit.Query{Action: "key.revoke"}, []int64{91, 61, 31, 1}},
		{"broker", audit.Query{Broker: "acme"}, []int64{91, 81, 71, 61, 51, 41, 31, 21, 11, 1}},
		{"part of a broker is none", audit.Query{Broker: "acm"}, nil},
		{"title", audit.Query{About: "акме"}, []int64{81, 71, 51, 41, 21, 11}},
		{"name before the change", audit.Query{About: "old NAME"}, []int64{91, 61, 31, 1}},
		{"id of the subject", audit.Query{About: "key-42"}, []int64{43}},
		{"time", audit.Query{Since: last.Add(-2 * time.Hour)}, []int64{100, 99, 98}},
		{"a time in the future", audit.Query{Since: last.Add(2 * time.Hour)}, nil},
		{"all of it", audit.Query{
			Who: "petro", About: "key-60", Broker: "acme", Action: "key.revoke", Since: begun.Add(time.Hour),
		}, []int64{61}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var found []int64
			for before, pages := int64(0), 0; ; pages++ {
				entries, older, err := audit.Search(t.Context(), log, c.query, before, 3)
				if err != nil || len(entries) > 3 || pages > 40 {
					t.Fatalf("got %d entries, %v on page %d; want at most 3 and an end", len(entries), err, pages)
				}
				found = append(found, numbers(entries)...)
				if before = older; older == 0 {
					break
				}
			}
			expect.ErrorIf(t, !slices.Equal(found, c.want), "search: got %v, want %v", found, c.want)
			var exported []int64
			err := audit.Export(t.Context(), log, c.query, func(e adminapi.Entry) error {
				exported = append(exported, e.Seq)
				return nil
			})
			slices.Reverse(exported)
			if err != nil || !slices.Equal(exported, c.want) {
				t.Errorf("export: got %v, %v; want %v", exported, err, c.want)
			}
		})
	}
}

func TestAQueryNamesABroker(t *testing.T) {
	both := adminapi.Entry{
		Subject: "key key-1",
		Before:  []byte(`{"name":"old","broker":"acme"}`), After: []byte(`{"name":"new","broker":"acme"}`),
	}
	alien, untold := both, adminapi.Entry{Subject: "key key-1"}
	alien.After = []byte(`{"name":"new","broker":5}`)
	for _, c := range []struct {
		name  string
		query audit.Query
		entry adminapi.Entry
		want  bool
	}{
		{"a text, of an entry about a broker's key", audit.Query{About: "new"}, both, true},
		{"the broker of a key", audit.Query{Broker: "acme"}, both, true},
		{"another broker", audit.Query{Broker: "other"}, both, false},
		{"the broker itself", audit.Query{Broker: "acme"}, adminapi.Entry{Subject: "broker acme"}, true},
		{"a broker with the name of another subject", audit.Query{Broker: "key key-1"}, untold, false},
		{"a name in a state of another form", audit.Query{About: "new"}, alien, false},
	} {
		expect.Equal(t, c.query.Matches(c.entry), c.want, "%s", c.name)
	}
}

func TestASearchGoesOnBeforeANumber(t *testing.T) {
	log := newMemory(10)
	for before, want := range map[int64]int64{0: 10, 11: 10, 1_000_000: 10, 10: 9, 2: 1} {
		found, _, err := audit.Search(t.Context(), log, audit.Query{}, before, 1)
		if err != nil || len(found) != 1 || found[0].Seq != want {
			t.Errorf("before %d: got %v, %v; want entry %d", before, numbers(found), err, want)
		}
	}
}

// growing is a log that has got entries after its head was read.
type growing struct {
	*memory
	head int64
}

func (g growing) Head(context.Context) (adminapi.Head, error) { return adminapi.Head{Seq: g.head}, nil }

func TestAnExportEndsWhereTheLogEndedWhenItBegan(t *testing.T) {
	for _, head := range []int64{0, 1, 600, 601} {
		var last int64
		err := audit.Export(t.Context(), growing{newMemory(601), head}, audit.Query{}, func(e adminapi.Entry) error {
			last = e.Seq
			return nil
		})
		if err != nil || last != head {
			t.Errorf("a log of %d entries: got the last one %d, %v; want no later one", head, last, err)
		}
	}
}

// holey is a log in which one entry is missing.
type holey struct {
	*memory
	hole int64
}

func (h holey) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	found, err := h.memory.Entries(ctx, after, limit)
	return slices.DeleteFunc(slices.Clone(found), func(e adminapi.Entry) bool { return e.Seq == h.hole }), err
}

func TestASearchGoesBeyondAMissingEntry(t *testing.T) {
	log := newMemory(100)
	since := audit.Query{Since: log.entries[97].Time}
	for hole := int64(1); hole < 97; hole++ {
		found, _, err := audit.Search(t.Context(), holey{log, hole}, since, 0, 100)
		if err != nil || !slices.Equal(numbers(found), []int64{100, 99, 98}) {
			t.Fatalf("without entry %d: got %v, %v; want 100, 99 and 98", hole, numbers(found), err)
		}
	}
}

func TestASearchReadsABoundedPartOfTheLog(t *testing.T) {
	log := newMemory(3 * audit.MaxRead)
	found, older, err := audit.Search(t.Context(), log, audit.Query{Who: "nobody"}, 0, 25)
	if err != nil || len(found) > 0 || older <= audit.MaxRead || log.read > audit.MaxRead {
		t.Errorf("got %d entries, older %d, %v after reading %d; want none, a number to go on from, at most %d read",
			len(found), older, err, log.read, audit.MaxRead)
	}
	for steps := 0; older != 0; steps++ {
		if found, older, err = audit.Search(t.Context(), log, audit.Query{About: "key-1"}, older, 1e9); err != nil || steps > 3 {
			t.Fatalf("step %d: got %v, older %d; want the end within 3", steps, err, older)
		}
	}
	expect.Equal(t, found[len(found)-1].Seq, 2, "the oldest entry")
	log.read = 0
	since := log.entries[len(log.entries)-10].Time
	if _, _, err := audit.Search(t.Context(), log, audit.Query{Since: since}, 0, 25); err != nil || log.read > 40 {
		t.Errorf("the last 10 hours: got %v after reading %d entries, want at most 40 read", err, log.read)
	}
}

func TestAnExportIsBounded(t *testing.T) {
	log := newMemory(audit.MaxExported + 5)
	visited := 0
	count := func(adminapi.Entry) error { visited++; return nil }
	err := audit.Export(t.Context(), log, audit.Query{}, count)
	if fault.KindOf(err) != fault.Invalid || visited > 0 {
		t.Errorf("got %v after %d entries, want a fault of kind Invalid before the first", err, visited)
	}
	log.read, log.most = 0, 0
	last := audit.Query{Since: log.entries[10].Time}
	if err := audit.Export(t.Context(), log, last, count); err != nil || visited != audit.MaxExported-5 || log.most > 500 {
		t.Errorf("got %v after %d entries in blocks of %d, want %d in blocks of at most 500",
			err, visited, log.most, audit.MaxExported-5)
	}
	visited, log.entries = 0, log.entries[:audit.MaxExported]
	if err := audit.Export(t.Context(), log, audit.Query{}, count); err != nil || visited != audit.MaxExported {
		t.Errorf("as many as an export may have: got %v after %d entries, want all %d", err, visited, audit.MaxExported)
	}
	broken := errors.New("broken")
	expect.Err(t, audit.Export(t.Context(), log, last, func(adminapi.Entry) error { return broken }), broken, "")
}
