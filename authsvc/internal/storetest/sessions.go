package storetest

import (
	"testing"
	"time"
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
