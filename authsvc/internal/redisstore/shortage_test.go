package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/fault"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestARedisThatCannotWorkNowIsUnavailable tries a server that runs a long script, and one whose connections are
// all in use. The fault must be of kind Unavailable.
func TestARedisThatCannotWorkNowIsUnavailable(t *testing.T) {
	busy := redistest.Start(t, "--busy-reply-threshold", "1")
	s := open(t, busy.URL())
	if _, err := s.Load(t.Context(), "a"); !errors.Is(err, token.ErrNotFound) {
		t.Fatalf("before: got %v, want ErrNotFound", err)
	}
	script := redis.NewClient(&redis.Options{Addr: busy.Addr, MaxRetries: -1, ReadTimeout: time.Minute})
	defer script.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		script.Eval(t.Context(), "while true do end", nil) // runs until the script is killed
	}()
	for wait := time.Now().Add(20 * time.Second); ; {
		_, err := s.Load(t.Context(), "a")
		if err != nil && strings.Contains(err.Error(), "BUSY") {
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("busy: got %v, want a fault of kind Unavailable", err)
			}
			break
		}
		expect.FatalIf(t, time.Now().After(wait), "got %v, want that Redis is busy", err)
	}
	expect.OK(t, redis.NewClient(&redis.Options{Addr: busy.Addr}).ScriptKill(t.Context()).Err())
	<-done

	full := redistest.Start(t)
	s = open(t, full.URL())
	expect.OK(t, script.Close())
	limit := redis.NewClient(&redis.Options{Addr: full.Addr})
	defer limit.Close()
	expect.OK(t, limit.ConfigSet(t.Context(), "maxclients", "1").Err())
	_, err := s.Load(t.Context(), "a")
	if fault.KindOf(err) != fault.Unavailable || errors.Is(err, token.ErrNotFound) {
		t.Errorf("without a free connection of Redis: got %v, want a fault of kind Unavailable", err)
	}
}

// TestAFailoverThatMayLoseChangesIsAWarning runs a server with a replica, with and without the setting
// min-replicas-to-write. There must be a warning only without the setting.
func TestAFailoverThatMayLoseChangesIsAWarning(t *testing.T) {
	for minimum, want := range map[string]int{"0": 1, "1": 0} {
		server := redistest.Start(t, "--min-replicas-to-write", minimum)
		s := open(t, server.URL())
		server.Replicate(t)
		if got := s.Warnings(t.Context()); len(got) != want {
			t.Errorf("min-replicas-to-write %s with a replica: got the warnings %q, want %d", minimum, got, want)
		}
	}
}

// TestAShortageOfConnectionsIsNoOutage takes the only connection that requests have. A request must be refused
// as unavailable, but Ready and the watch of keys must still work.
func TestAShortageOfConnectionsIsNoOutage(t *testing.T) {
	server := redistest.Start(t)
	meter := metrictest.New()
	s, err := Open(server.URL()+"?pool_size=1", meter)
	expect.OK(t, err)
	t.Cleanup(func() { s.Close() })
	held := s.client.Conn()
	defer held.Close()
	expect.OK(t, held.Ping(t.Context()).Err())
	begun := time.Now()
	_, err = s.Load(t.Context(), "a")
	if fault.KindOf(err) != fault.Unavailable || errors.Is(err, token.ErrNotFound) {
		t.Fatalf("a request: got %v, want a fault of kind Unavailable, as it has no connection", err)
	}
	if waited := time.Since(begun); waited < timeouts.Pool {
		t.Errorf("a request: got a refusal after %v, want one after the wait of %v", waited, timeouts.Pool)
	}
	expect.Err(t, s.Ready(t.Context()), nil, "ready")
	expect.ErrOf(t, nil, "the watch of keys")(s.Head(t.Context()))
	if warnings := s.Warnings(t.Context()); warnings != nil {
		t.Errorf("warnings: got %q, want none", warnings)
	}
	told := meter.Read(t)
	if _, known := told["registry.backup.finished.timestamp"]; !known || told["registry.store.memory.used{tokens}"] == 0 {
		t.Errorf("metrics: got %v, want the memory and the last backup", told)
	}
	server.Kill(t)
	expect.Fails(t, s.Ready(t.Context()), "ready without Redis")
}
