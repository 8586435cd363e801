package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// backupKey is the name under which Redis has the time when the last complete backup ended, in seconds since
// the Unix epoch. The backup script sets it.
const backupKey = "registry:backup"

// clockError is the largest difference of clocks that has no consequence.
const clockError = time.Hour

// askTimeout bounds the wait for Redis when metrics are read.
const askTimeout = 500 * time.Millisecond

// measure adds metrics of the server's memory, of its refusals and of the last backup to a meter, until the function
// `silence` is called. While the server does not answer, the metrics are missing.
func (s *Store) measure(meter metric.Meter) (silence func() error, err error) {
	memory, err := telemetry.MeasureStore(meter, "tokens", s.memory)
	if err != nil {
		return nil, err
	}
	observed := telemetry.Observe(meter)
	finished := observed.Seconds("registry.backup.finished",
		"End of the last complete backup, since the Unix epoch; 0: there is none.")
	refusing := observed.Gauge("registry.store.refusing", "", "1 while Redis of the tokens refuses writes, else 0.")
	own, err := observed.Read(func(ctx context.Context, o metric.Observer) {
		o.ObserveInt64(refusing, telemetry.Flag(s.refuses() != nil))
		if at, known := s.lastBackup(ctx); known {
			o.ObserveFloat64(finished, at)
		}
	})
	if err != nil {
		return nil, errors.Join(err, memory())
	}
	return func() error { return errors.Join(memory(), own()) }, nil
}

// memory returns how much memory Redis uses, and how much it may use. It returns zeros if Redis does not
// answer.
func (s *Store) memory(ctx context.Context) telemetry.StoreUse {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	info, err := s.watcher.Info(ctx, "memory").Result()
	if err != nil {
		return telemetry.StoreUse{}
	}
	number := func(name string) int64 {
		_, rest, _ := strings.Cut(info, "\n"+name+":")
		text, _, _ := strings.Cut(rest, "\r")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return telemetry.StoreUse{MemoryUsed: number("used_memory"), MemoryMax: number("maxmemory")}
}

// lastBackup returns when the last complete backup ended, in seconds since the Unix epoch; 0 if there was no backup.
// The result `known` is false if Redis does not answer.
func (s *Store) lastBackup(ctx context.Context) (at float64, known bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := s.watcher.MGet(ctx, backupKey).Result() // MGET returns no error if Redis lacks the name
	if err != nil || len(text) != 1 {
		return 0, false
	}
	stamp, _ := text[0].(string)
	if stamp == "" {
		return 0, true
	}
	at, err = strconv.ParseFloat(stamp, 64)
	if at > float64(time.Now().Add(clockError).Unix()) { // a wrong clock has set it, so the age of the backup is not known
		at = 0
	}
	return at, err == nil
}
