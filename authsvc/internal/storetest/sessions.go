package storetest

import (
	"strconv"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

func testSessions(t *testing.T, open Opener) {
	s := open(t, "a")
	for range 2 { // a browser may send the request twice
		if err := s.EndSession(t.Context(), "ended", time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.EndSession(t.Context(), "another", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a")
	for id, want := range map[string]bool{"ended": true, "another": true, "open": false, "": false} {
		got, err := s.SessionEnded(t.Context(), id)
		if err != nil || got != want {
			t.Errorf("session %q: got ended %v, %v; want %v", id, got, err, want)
		}
	}
}

func testKeptSessions(t *testing.T, open Opener) {
	s := open(t, "a")
	keep := func(id, was, text string, want bool) {
		t.Helper()
		expect.Value(t, want, "session %s: keep %q for %q", id, text, was)(
			s.KeepSession(t.Context(), id, was, text, time.Hour))
	}
	keep("one", "", "first", true)
	keep("one", "", "late", false)
	keep("one", "other", "late", false)
	keep("one", "first", "second", true)
	keep("one", "first", "late", false)
	keep("none", "first", "late", false)
	keep("over", "", "first", true)
	expect.OK(t, s.EndSession(t.Context(), "over", time.Hour))
	keep("over", "first", "late", false)
	keep("over", "", "late", false) // an ended session does not come back
	expect.OK(t, s.Close())
	s = open(t, "a")
	for id, want := range map[string]string{"one": "second", "over": "", "none": "", "": ""} {
		expect.Value(t, want, "session %s", id)(s.KeptSession(t.Context(), id))
		expect.Value(t, id == "over", "session %s ended", id)(s.SessionEnded(t.Context(), id))
	}
}

// testConcurrentKeeps replaces one text many times at once. Only one caller may succeed.
func testConcurrentKeeps(t *testing.T, open Opener) {
	s := open(t, "a")
	expect.Value(t, true, "keep")(s.KeepSession(t.Context(), "one", "", "first", time.Hour))
	won := make(chan bool, 8)
	for n := range cap(won) {
		go func() {
			kept, err := s.KeepSession(t.Context(), "one", "first", strconv.Itoa(n), time.Hour)
			won <- kept && err == nil
		}()
	}
	winners := 0
	for range cap(won) {
		if <-won {
			winners++
		}
	}
	expect.Equal(t, winners, 1, "callers that have replaced the same text")
}
