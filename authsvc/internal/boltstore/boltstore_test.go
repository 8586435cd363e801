package boltstore

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/storetest"
	"asset-registry/authsvc/internal/token"
)

func TestAdminConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.RunAdmin(t, func(t *testing.T, name string) storetest.AdminStore {
		t.Helper()
		s, err := Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

// A file of an earlier version holds transfers without an end.
func TestTransfersOfAnEarlierVersionGetTheirEnd(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "tokens.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	unclaimed, claimed := token.Transfer{ID: "unclaimed", Broker: "b", Date: 1}, token.Transfer{ID: "claimed", Broker: "b", Date: 1, AssetID: "asset"}
	for _, made := range []token.Transfer{unclaimed, claimed} {
		if err := s.CreateTransfer(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	unclaimed.Expires = now.Add(time.Hour).UnixMicro()
	for _, end := range []time.Time{now.Add(time.Hour), now.Add(2 * time.Hour)} { // an end that is set stays
		if next, err := s.SweepTransfers(t.Context(), "", now, end); err != nil || next != "" {
			t.Fatalf("got %q, %v; want it done", next, err)
		}
		for _, want := range []token.Transfer{unclaimed, claimed} {
			if got, err := s.LoadTransfer(t.Context(), want.ID); err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		}
	}
}

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, func(t *testing.T, name string) storetest.Store {
		t.Helper()
		s, err := Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}
