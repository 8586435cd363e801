package fair

import (
	"testing"
	"time"
)

// sent is an answer that has waited for a given time.
type sent struct {
	waits time.Duration
	cut   bool
}

func (s *sent) Waits() time.Duration { return s.waits }
func (s *sent) Cut()                 { s.cut = true }

// TestTheCallerWithTheMostGivesWay lets callers hold answers, and takes what is needed until nobody waits. Each holder gives
// back once, whether it is cut or ends by itself.
// Promises: stuck-answers
func TestTheCallerWithTheMostGivesWay(t *testing.T) {
	var h Held
	if h.Take() {
		t.Fatal("got an answer of nobody, want none")
	}
	given := map[string]int{}
	answers, ends := map[string]*sent{}, map[string]func(){}
	for _, a := range []struct {
		name, by string
		waits    time.Duration
	}{
		{"one", "honest", time.Hour}, {"two a", "two", time.Second}, {"two b", "two", time.Minute},
		{"many a", "many", time.Second}, {"many b", "many", 2 * time.Second}, {"many c", "many", 0},
		{"many d", "many", time.Second - 1},
	} {
		answers[a.name] = &sent{waits: a.waits}
		ends[a.name] = h.Add(a.by, answers[a.name], func() { given[a.name]++ })
	}
	// Of the caller `many`, the two that wait for less than a second stay, and it has as many as `two` after two cuts.
	for _, want := range []string{"many b", "many a", "two b"} {
		if !h.Take() || !answers[want].cut || given[want] != 1 {
			t.Errorf("got %v given back, want %s cut next", given, want)
		}
	}
	for h.Take() {
	}
	for name, a := range answers {
		ends[name]()
		if a.cut != (a.waits >= patience) || given[name] != 1 {
			t.Errorf("%s: got cut %t, given back %d times; want it cut after a second, given back once", name, a.cut, given[name])
		}
	}
	if len(h.all)+len(h.callers) > 0 {
		t.Errorf("got %d answers of %d callers at the end, want none", len(h.all), len(h.callers))
	}
}
