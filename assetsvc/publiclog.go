package assetsvc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/shared/closing"
	"asset-registry/shared/errs"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/logclient"
	"asset-registry/shared/logkey"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/translog"
)

// store keeps the assets and the public log, and has the methods that snapshots need. All stores except the
// store of a mirror also keep webhooks (webhook.Store).
type store interface {
	registry.Store
	publiclog.Store
	snapshot.Store

	// Now returns the time of the clock from which positions are taken. A write that begins after the call gets
	// no position below that time, unless the clock was set back by more than a second.
	Now() time.Time
}

// LogFiles names the files of the public log. With the tags, the fields are settings of a command.
type LogFiles struct {
	LogKeyFile string `placeholder:"FILE" help:"Secret keys of the public log, one a line, the newest first."`
	LogPolicy  string `placeholder:"FILE" help:"Policy file (C2SP tlog-policy) with the witnesses of the public log."`
}

// Read returns the keys and the policy in the files. Those of a file without a name are nil.
func (f LogFiles) Read() (keys []translog.Key, policy *translog.Policy, err error) {
	var badKeys, badPolicy error
	if f.LogKeyFile != "" {
		keys, badKeys = logkey.Read(f.LogKeyFile)
	}
	if f.LogPolicy != "" {
		policy, badPolicy = logclient.ReadPolicy(f.LogPolicy)
	}
	return keys, policy, errors.Join(errs.In(badKeys, "--log-key-file"), errs.In(badPolicy, "--log-policy"))
}

// The faults of a configuration of the log.
var (
	errLogKeys   = errors.New("--log-key-file: the keys of the public log must be keys of logs with one name")
	errLogPolicy = errors.New("--log-policy: the policy must have the public key of the log's newest key")
)

// checkLog returns errLogKeys unless all keys belong to one log. It returns errLogPolicy if the policy does not
// know the newest key.
func checkLog(keys []translog.Key, policy *translog.Policy) error {
	for _, key := range keys {
		if k := key.Public(); k.Use() != translog.ForLog || k.Name() != keys[0].Public().Name() {
			return errLogKeys
		}
	}
	if policy == nil {
		return nil
	}
	isNewest := func(l translog.PolicyLog) bool { return len(keys) > 0 && l.Key == keys[0].Public() }
	if !slices.ContainsFunc(policy.Logs, isNewest) {
		return errLogPolicy
	}
	return nil
}

// logWriter extends and signs the public log in the background.
type logWriter struct {
	begun     time.Time            // with a monotonic time
	covered   atomic.Int64         // nanoseconds after the time begun; a checkpoint covers all changes up to then
	witnesses *logclient.Witnesses // nil: no witnesses
	missing   *failurelog.Log      // logs missing cosignatures
	patrol    *publiclog.Patrol
	witnessed *cosignatures // nil: no witnesses
}

// keepLog starts writing the public log. In a mirror, it starts copying the log of the registry. It returns a
// function that returns the origin of the log, or nil if there is no log.
func (s *Server) keepLog(c Config) (origin func(context.Context) string, err error) {
	if c.Mirror != nil {
		c.Mirror.copyLog(s.store, &s.closers)
		return originOf(s.public), nil
	}
	if len(c.LogKeys) == 0 {
		return nil, nil
	}
	if s.log, err = startLog(s.store, c, &s.closers); err != nil {
		return nil, err
	}
	name := c.LogKeys[0].Public().Name()
	return func(context.Context) string { return name }, nil
}

// startLog starts a writer of the public log, which the list ends.
func startLog(store store, c Config, closers *closing.List) (w *logWriter, err error) {
	w = &logWriter{begun: time.Now()}
	keys := make([]translog.PublicKey, len(c.LogKeys))
	for i, key := range c.LogKeys {
		keys[i] = key.Public()
	}
	policy, err := translog.LogPolicy(keys...)
	if err != nil {
		return nil, err
	}
	w.patrol = publiclog.NewPatrol(store, policy, patrolEvery)
	closers.Do(w.measure(c.Telemetry.Meter(), store))
	o := publiclog.Options{Keys: c.LogKeys}
	if c.LogPolicy != nil {
		if w.witnesses, err = logclient.NewWitnesses(c.LogPolicy, nil, cosignWithin); err != nil {
			return nil, err
		}
		closers.Do(w.witnesses.Close)
		w.witnessed = newCosignatures(c.Telemetry.Meter(), c.LogPolicy)
		w.missing = failurelog.NewState(c.Log, "witnesses do not cosign the public log")
		o.Cosign = w.cosign(publiclog.NewReader(store))
	}
	damages := failurelog.New(c.Log, "the public log cannot be verified")
	closers.Go(context.Background(), func(ctx context.Context) { w.patrol.Run(ctx, damages.Failed) })
	failures := failurelog.NewState(c.Log, "the public log cannot be extended or signed; it is tried again")
	closers.Go(context.Background(), func(ctx context.Context) {
		publiclog.NewWriter(store, store, o).Run(ctx, func(upto time.Time, err error) {
			w.cover(upto)
			failures.Tell(err)
		})
	})
	return w, nil
}

// patrolEvery is the time between two verifications of the public log.
const patrolEvery = 6 * time.Hour

// Warnings returns a sentence for each danger that the service has found in its data.
func (s *Server) Warnings(context.Context) []string {
	if s.log == nil || s.log.patrol.Damage() == "" {
		return nil
	}
	return []string{s.log.patrol.Damage()}
}

// cosignWithin is the longest time for one request to a witness.
const cosignWithin = 5 * time.Second

// errWitnesses is returned for a checkpoint with fewer cosignatures than the policy demands.
var errWitnesses = errors.New("too few witnesses have cosigned the checkpoint")

// cosign returns a function for publiclog.Options.Cosign. The function asks the witnesses.
func (w *logWriter) cosign(log *publiclog.Reader) func(context.Context, translog.Checkpoint, []byte) ([]byte, error) {
	return func(ctx context.Context, c translog.Checkpoint, signed []byte) ([]byte, error) {
		got := w.witnesses.Cosign(ctx, signed, c.Size, func(ctx context.Context, older int64) ([]tlog.Hash, error) {
			return log.Consistent(ctx, older, c)
		})
		w.witnessed.note(ctx, got.Faults)
		for _, name := range slices.Sorted(maps.Keys(got.Faults)) {
			w.missing.Failed(fmt.Errorf("%s: %w", name, got.Faults[name]))
		}
		if len(got.Faults) == 0 {
			w.missing.Worked()
		}
		if !got.Quorum {
			return nil, errWitnesses
		}
		return got.Checkpoint, nil
	}
}

// cover records that a checkpoint covers all changes up to a time. A time in the future comes from a wrong clock, and
// counts as none.
func (w *logWriter) cover(upto time.Time) {
	if old := time.Since(upto); old >= 0 {
		w.covered.Store(max(w.covered.Load(), int64(time.Since(w.begun)-old)))
	}
}

// behind returns the age of the oldest change that may lack a checkpoint.
func (w *logWriter) behind() time.Duration {
	return time.Since(w.begun) - time.Duration(w.covered.Load())
}

// measure registers metrics of the log: the age of the oldest change that may lack a checkpoint, the size of the
// log, and whether the log is damaged.
func (w *logWriter) measure(meter metric.Meter, store store) (silence func()) {
	observed := telemetry.Observe(meter)
	behind := observed.Seconds("registry.log.behind",
		"Age of the oldest change that may lack a checkpoint of the public log.")
	size := observed.Gauge("registry.log.size", "{leaf}", "Leaves of the public log; the same at every asset service.")
	damaged := observed.Gauge("registry.log.damaged", "", "1 if the stored public log does not fit together, else 0.")
	return observed.Read(func(ctx context.Context, o metric.Observer) {
		o.ObserveFloat64(behind, w.behind().Seconds())
		o.ObserveInt64(damaged, int64(min(1, len(w.patrol.Damage()))))
		head, err := store.LogHead(ctx)
		if err != nil {
			return // the writer of the log reports this error
		}
		o.ObserveInt64(size, head.Tree.Size())
	})
}

// cosignatures counts, for each witness, how many of the requested cosignatures it gave, and how many it did not
// give.
type cosignatures struct {
	count          metric.Int64Counter
	given, missing map[string]metric.AddOption // labels of the counts; the keys are names of witnesses
}

// newCosignatures returns counts of 0 for each witness in the policy, if the witness has an address.
func newCosignatures(meter metric.Meter, policy *translog.Policy) *cosignatures {
	count := telemetry.Counter(meter, "registry.log.cosignatures", "{cosignature}",
		"Cosignatures of checkpoints of the public log that witnesses were asked for.")
	c := &cosignatures{count, map[string]metric.AddOption{}, map[string]metric.AddOption{}}
	for _, w := range policy.Witnesses {
		if w.URL == "" {
			continue
		}
		c.given[w.Name], c.missing[w.Name] = labels(w.Name, "given"), labels(w.Name, "missing")
		count.Add(context.Background(), 0, c.given[w.Name])
		count.Add(context.Background(), 0, c.missing[w.Name])
	}
	return c
}

func labels(witness, result string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(
		attribute.String("witness", witness), attribute.String("result", result)))
}

// note counts the results of one checkpoint. The map `faults` has an error for each witness that did not cosign the
// checkpoint.
func (c *cosignatures) note(ctx context.Context, faults map[string]error) {
	for name, given := range c.given {
		if faults[name] == nil {
			c.count.Add(ctx, 1, given)
		} else {
			c.count.Add(ctx, 1, c.missing[name])
		}
	}
}
