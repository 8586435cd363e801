package redisstore

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/shared/closing"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestAServerThatTakesNoWritesIsToldOf runs servers that answer, but refuse writes. The service itself has to notice,
// and Ready must stay good, because keys are still verified.
func TestAServerThatTakesNoWritesIsToldOf(t *testing.T) {
	for setting, c := range map[string]struct{ refuse, accept, want string }{
		"maxmemory":             {"1", "0", "OOM"},
		"min-replicas-to-write": {"1", "0", "NOREPLICAS"},
		"slaveof":               {"127.0.0.1 1", "no one", "READONLY"},
	} {
		server := redistest.Start(t)
		control := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer control.Close()
		set := func(value string) {
			command := []any{"CONFIG", "SET", setting, value}
			if host, port, isReplica := strings.Cut(value, " "); isReplica {
				command = []any{"REPLICAOF", host, port}
			}
			expect.OK(t, control.Do(t.Context(), command...).Err())
		}
		meter := metrictest.New()
		s, err := Open(server.URL(), meter)
		expect.OK(t, err)
		defer s.Close()
		for _, step := range []struct {
			value, want string
			metric      float64
		}{{"", "", 0}, {c.refuse, c.want, 1}, {c.accept, "", 0}} {
			if step.value != "" {
				set(step.value)
			}
			if err := s.Ready(t.Context()); err != nil && step.value == "" {
				t.Fatalf("ready: got %v, want no error", err)
			}
			s.askForWrites(t.Context())
			told := strings.Join(s.Warnings(t.Context()), " ")
			if strings.Contains(told, "refuses writes") != (step.want != "") || !strings.Contains(told, step.want) {
				t.Errorf("%s %s: got the warnings %q, want %q in them", setting, step.value, told, step.want)
			}
			expect.Equal(t, meter.Read(t)["registry.store.refusing"], step.metric, "%s %s, the metric", setting,
				step.value)
			expect.Err(t, s.Ready(t.Context()), nil, "%s %s, ready", setting, step.value)
		}
	}
}

// TestNoRequestAsksForWrites looks at the server's count of SET while Ready and Warnings are asked for, and while the
// store asks by itself.
func TestNoRequestAsksForWrites(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	sets := func() string {
		stats, err := s.watcher.Info(t.Context(), "commandstats").Result()
		expect.OK(t, err)
		_, rest, _ := strings.Cut(stats, "cmdstat_set:calls=")
		calls, _, _ := strings.Cut(rest, ",")
		return calls
	}
	if err := s.Ready(t.Context()); err != nil { // stores the format
		t.Fatal(err)
	}
	before := sets()
	for range 20 {
		s.Warnings(t.Context())
		expect.OK(t, s.Ready(t.Context()))
	}
	expect.Equal(t, sets(), before, "after 20 questions: writes")
	var watching closing.List
	watching.Go(t.Context(), func(ctx context.Context) { s.WatchWrites(ctx, slog.New(slog.DiscardHandler)) })
	defer watching.Close()
	for wait := time.Now().Add(20 * time.Second); sets() == before; time.Sleep(time.Millisecond) {
		expect.FatalIf(t, time.Now().After(wait), "got no write by the store itself, want one")
	}
}
