package redisstore

import (
	"errors"
	"testing"
	"time"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/fault"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/redistest"
)

// TestAShortageOfConnectionsIsNoOutage holds the only connection that requests have.
func TestAShortageOfConnectionsIsNoOutage(t *testing.T) {
	server := redistest.Start(t)
	meter := metrictest.New()
	s, err := Open(server.URL()+"?pool_size=1", meter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	held := s.client.Conn()
	defer held.Close()
	if err := held.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err = s.Load(t.Context(), "a")
	if fault.KindOf(err) != fault.Unavailable || errors.Is(err, token.ErrNotFound) {
		t.Fatalf("a request: got %v, want a fault of kind Unavailable, as it has no connection", err)
	}
	if waited := time.Since(begun); waited < timeouts.Pool {
		t.Errorf("a request: got a refusal after %v, want one after the wait of %v", waited, timeouts.Pool)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("ready: got %v, want no error", err)
	}
	if _, err := s.Head(t.Context()); err != nil {
		t.Errorf("the watch of keys: got %v, want no error", err)
	}
	if warnings := s.Warnings(t.Context()); warnings != nil {
		t.Errorf("warnings: got %q, want none", warnings)
	}
	told := meter.Read(t)
	if _, known := told["registry.backup.finished"]; !known || told["registry.store.memory.used{tokens}"] == 0 {
		t.Errorf("metrics: got %v, want the memory and the last backup", told)
	}
	server.Kill(t)
	if err := s.Ready(t.Context()); err == nil {
		t.Error("ready without Redis: got no error, want one")
	}
}
