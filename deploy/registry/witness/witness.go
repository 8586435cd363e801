// Package witness is a witness of public logs (C2SP tlog-witness). It cosigns a new checkpoint of a log only if
// the checkpoint continues the one that it cosigned before. So if a log shows different trees to different
// readers, only one of the trees gets cosignatures.
package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/translog"
)

// Config configures a witness. Log and Now have defaults.
type Config struct {
	Key   translog.Key // a key for witnesses
	Logs  []translog.PublicKey
	State string           // directory of the witness's memory; no other process may use it
	Log   *slog.Logger     // nil: nothing is logged
	Now   func() time.Time // nil: time.Now
}

// Witness cosigns checkpoints. Its methods may be called concurrently.
type Witness struct {
	key   translog.Key
	logs  map[string]*known // state of each log, by its origin; New makes the map, and nothing changes it later
	state *directory
	log   *slog.Logger
	now   func() time.Time

	repeats *failurelog.Repeats
}

// known is the state of a log that the witness knows.
type known struct {
	policy *translog.Policy // keys of the log

	mu       sync.Mutex
	cosigned translog.Checkpoint // last checkpoint that was cosigned
}

// New opens the witness's memory. If a part of the memory is damaged, it returns an error.
func New(c Config) (*Witness, error) {
	if c.Key.Public().Use() != translog.ForWitness {
		return nil, fmt.Errorf("%q is not the key of a witness", c.Key.Public().Name())
	}
	if len(c.Logs) == 0 {
		return nil, errors.New("the witness knows no log")
	}
	w := &Witness{key: c.Key, logs: map[string]*known{}, log: c.Log, now: c.Now}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	w.repeats = failurelog.NewRepeats(w.log)
	if w.now == nil {
		w.now = time.Now
	}
	keys := map[string][]translog.PublicKey{}
	for _, key := range c.Logs {
		keys[key.Name()] = append(keys[key.Name()], key)
	}
	var err error
	if w.state, err = openDirectory(c.State); err != nil {
		return nil, err
	}
	for origin := range keys {
		k := &known{}
		if k.policy, err = translog.LogPolicy(keys[origin]...); err == nil {
			k.cosigned, err = w.state.load(origin)
		}
		if err != nil {
			return nil, errors.Join(err, w.state.close())
		}
		w.logs[origin] = k
	}
	return w, nil
}

// warn logs a line about a submission, or counts it if there was one like it in this minute: anybody may send a
// checkpoint again.
func (w *Witness) warn(level slog.Level, what, origin string, args ...any) {
	if w.repeats.IsFirst(failurelog.Cause{Level: level, What: what, Of: origin}) {
		w.log.Log(context.Background(), level, what, append([]any{"origin", origin}, args...)...)
	}
}

// Close releases the memory for another process. No call of another method may be in progress.
func (w *Witness) Close() error { return w.state.close() }

// Errors of Cosign, in addition to the errors that translog.Policy.Open wraps.
var (
	ErrUnknownLog = errors.New("the log is not known")
	ErrOldSize    = errors.New("the old size is greater than the size of the checkpoint")
	ErrFork       = errors.New("another checkpoint of this size was cosigned")
)

// StaleError is the error for a submission whose old size differs from the size of the last cosigned checkpoint.
type StaleError struct {
	Size int64 // size of the last cosigned checkpoint; 0: none was cosigned
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("the last cosigned checkpoint has size %d", e.Size)
}

// Cosign checks a submission, durably remembers its checkpoint, and returns the line with the cosignature. If
// the submission's proof is wrong, the error wraps translog.ErrConsistency. After an error, nothing was
// cosigned.
func (w *Witness) Cosign(s translog.Submission) ([]byte, error) {
	claimed, err := translog.Unverified(s.Checkpoint)
	if err != nil {
		return nil, err
	}
	origin := claimed.Origin
	k, ok := w.logs[origin]
	if !ok {
		return nil, fmt.Errorf("%w: %.100q", ErrUnknownLog, origin)
	}
	signed, err := k.policy.Open(s.Checkpoint)
	if err != nil {
		return nil, err
	}
	if s.Old > signed.Size {
		return nil, ErrOldSize
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.Old != k.cosigned.Size {
		return nil, &StaleError{k.cosigned.Size}
	}
	if signed.Size == k.cosigned.Size && signed.Root != k.cosigned.Root {
		w.warn(slog.LevelError, "the log signed two trees of one size", origin, "size", signed.Size,
			"root", signed.Root.String(), "cosigned_root", k.cosigned.Root.String(), "checkpoint", string(s.Checkpoint))
		return nil, ErrFork
	}
	if err := translog.CheckConsistency(k.cosigned, signed.Checkpoint, s.Proof); err != nil {
		w.warn(slog.LevelWarn, "refused a checkpoint without a valid proof", origin, "size", signed.Size,
			"cosigned_size", k.cosigned.Size)
		return nil, err
	}
	line, err := translog.Cosign(s.Checkpoint, w.key, w.now())
	if err != nil {
		return nil, err
	}
	if signed.Checkpoint != k.cosigned {
		if err := w.state.save(origin, s.Checkpoint); err != nil {
			return nil, fmt.Errorf("remember the checkpoint: %w", err)
		}
		k.cosigned = signed.Checkpoint
	}
	return line, nil
}
