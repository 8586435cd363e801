// Package ending notices that the store of keys went back in time, and ends again what had ended. The asset services
// keep the endings of keys and brokers beside the assets, and ask for new ones (authapi.Ending). The invariants:
//
//   - E1. A verification counts only if the store has every entry that this process has read. If it lacks one, keys
//     wait until the endings of the lost entries are carried out.
//   - E2. After a start of the store's server, keys wait until an asset service has told the newest entry that it
//     keeps. If that entry is lost, the asset service sends all endings that it keeps before it is told a new entry.
//   - E3. If the asset services keep less than they had confirmed, and the server has started since, endings may be
//     lost. Then keys wait for a person (Accept).
//   - E4. An ending that no asset service has confirmed stays in the memory of each process that has read its entry.
package ending

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
)

// Store is the part of the store of keys that a Guard needs.
type Store interface {
	apikey.Log
	// Told returns the newest entry that an asset service has confirmed. It is zero if none has. The result `here`
	// reports whether this happened since the start of the server that answers.
	Told(ctx context.Context) (head adminapi.Head, here bool, err error)
	// Tell durably stores a confirmation.
	Tell(ctx context.Context, head adminapi.Head) error
}

// Service makes the changes of a Guard (admin.Service).
type Service interface {
	NoteLoss(ctx context.Context, lost adminapi.Head) (mark adminapi.Head, entries int64, err error)
	EndAgain(ctx context.Context, e authapi.Ending) error
}

// Guard compares the store with what this process and the asset services know. It is safe for concurrent use.
type Guard struct {
	store   Store
	service Service
	log     *slog.Logger
	lost    metric.Int64Counter
	waiting metric.Int64Gauge

	patience time.Duration // the longest time of a check

	mu     sync.Mutex
	sure   bool             // the store has all entries that anybody knows of
	since  int64            // an answer of the store before this entry may be older than the mending
	behind bool             // the store lacks the entry `seen`, and its loss is not carried out
	seen   adminapi.Head    // newest entry that this process has read
	told   bool             // an asset service has confirmed an entry at some time
	tail   []authapi.Ending // endings that no asset service has confirmed
	asked  time.Time        // when the store was asked for the last time while `sure` was false
}

// New returns a guard of a store.
func New(store Store, service Service, log *slog.Logger, meter metric.Meter) *Guard {
	lost := telemetry.Counter(meter, "registry.audit.lost", "{entry}",
		"Entries of the audit log that this process found lost: the store went back in time.")
	waiting := telemetry.Must(meter.Int64Gauge("registry.keys.waiting",
		metric.WithDescription("1 if all keys wait for a person, because revocations may be lost, else 0.")))
	lost.Add(context.Background(), 0)
	waiting.Record(context.Background(), 0)
	return &Guard{store: store, service: service, log: log, lost: lost, waiting: waiting, patience: patience}
}

const (
	patience = 1200 * time.Millisecond // callers of the service wait two seconds
	askEvery = 20 * time.Millisecond
)

func (g *Guard) Check(ctx context.Context, head adminapi.Head) error {
	for began := time.Now(); ; {
		was, sure, err := g.look(ctx, head)
		switch {
		case err != nil || was && sure:
			return err
		case sure:
			return apikey.ErrAskAgain
		case time.Since(began) > g.patience || !sleep.For(ctx, askEvery):
			return fault.New(fault.Unavailable, fault.Header, "Authorization",
				"Keys cannot be checked now: the store of keys may lack revocations. Repeat the request.")
		}
	}
}

// look reports whether the store was sure to have all entries that anybody knows of, and whether it is. The argument is
// a head that the store just had.
func (g *Guard) look(ctx context.Context, head adminapi.Head) (was, is bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sure && head == g.seen {
		return true, true, nil
	}
	was = g.sure && head.Seq >= g.since
	if !g.sure && time.Since(g.asked) < askEvery {
		return was, false, nil
	}
	g.asked = time.Now()
	err = g.follow(ctx)
	return was, g.sure, err
}

// Errors that end the reading of entries: the store lacks an entry that it had, or another process has found that.
var (
	errGone  = errors.New("the store lacks an entry that it had")
	errFound = errors.New("another process carries out what the store has lost")
)

// follow reads the entries that the store has got, if it is right. The mutex must be held.
func (g *Guard) follow(ctx context.Context) error {
	told, here, err := g.store.Told(ctx)
	if err != nil {
		return err
	}
	g.told = g.told || told.Seq > 0
	if g.behind {
		if _, err := g.carryOut(ctx, g.seen, g.tail); err != nil {
			return err
		}
		g.behind = false
	}
	begins := !g.sure
	if begins {
		there, err := g.has(ctx, told)
		if err != nil || g.told && !(here && there) {
			return err
		}
		g.sure, g.seen, g.tail = true, told, nil
		g.waiting.Record(ctx, 0)
	}
	known := g.seen.Seq == 0
	err = audit.Each(ctx, g.store, max(0, g.seen.Seq-1), func(e adminapi.Entry) error {
		head := adminapi.Head{Seq: e.Seq, Hash: e.Hash}
		if !known && head != g.seen {
			return errGone
		}
		if g.told && e.Action == adminapi.LogLost && e.Seq > told.Seq {
			return errFound
		}
		if known {
			g.seen, g.tail = head, append(g.tail, admin.EndingsOf(e)...)
		}
		known = true
		return nil
	})
	if err == nil && !known || errors.Is(err, errGone) {
		g.sure, g.behind = false, true
		return nil
	}
	if errors.Is(err, errFound) {
		g.sure = false
		return nil
	}
	if begins {
		g.sure, g.since = err == nil, g.seen.Seq
	}
	g.tail = slices.DeleteFunc(g.tail, func(e authapi.Ending) bool { return e.Seq <= told.Seq })
	return err
}

// has reports whether the store has the entry with this number and hash. It has the zero head.
func (g *Guard) has(ctx context.Context, head adminapi.Head) (bool, error) {
	if head.Seq == 0 {
		return true, nil
	}
	found, err := g.store.Entries(ctx, head.Seq-1, 1)
	return len(found) == 1 && found[0].Seq == head.Seq && found[0].Hash == head.Hash, err
}

// carryOut notes that the store lost an entry, and ends again what lost entries had ended. It returns the entry that
// begins the new chain. It may be repeated.
func (g *Guard) carryOut(ctx context.Context, lost adminapi.Head, endings []authapi.Ending) (adminapi.Head, error) {
	mark, entries, err := g.service.NoteLoss(ctx, lost)
	if err != nil {
		return mark, err
	}
	if entries > 0 {
		g.lost.Add(ctx, entries)
		g.log.Error("the store of keys went back in time and lost entries of the audit log",
			"entries", entries, "lost", lost.String(), "new_chain", mark.String())
	}
	for _, e := range endings {
		if e.Subject == "" { // the row HeadID
			continue
		}
		there, err := g.has(ctx, adminapi.Head{Seq: e.Seq, Hash: e.Hash})
		if err == nil && !there {
			err = g.service.EndAgain(ctx, e)
		}
		if err != nil {
			return mark, err
		}
	}
	return mark, nil
}

// Wait waits until the log does not end at a head any more (apikey.Watch).
type Wait func(ctx context.Context, since string, wait time.Duration) (authapi.WatchKeysResponse, error)

// Hear answers an asset service: it takes the confirmation of what the service keeps, and returns later endings.
func (g *Guard) Hear(
	ctx context.Context, r authapi.EndingsRequest, wait Wait,
) (answer authapi.EndingsResponse, err error) {
	kept := adminapi.Head{Seq: r.At.Seq, Hash: r.At.Hash}
	told, here, err := g.store.Told(ctx)
	if err != nil {
		return answer, err
	}
	if !here && kept.Seq < told.Seq {
		g.waiting.Record(ctx, 1)
		return answer, fault.New(fault.Unavailable, fault.Body, "at", "Entry %d was confirmed, but the asset services "+
			"keep endings up to entry %d only. Keys wait for a person: see KeysWait in the runbook.", told.Seq, kept.Seq)
	}
	there, err := g.has(ctx, kept)
	switch {
	case err != nil:
		return answer, err
	case !there && !r.Last && len(r.Endings) == 0:
		return authapi.EndingsResponse{Behind: true}, nil
	case !there:
		mark, err := g.carryOut(ctx, kept, r.Endings)
		if err != nil || !r.Last {
			return authapi.EndingsResponse{Behind: true}, err
		}
		return authapi.EndingsResponse{Endings: []authapi.Ending{rowOf(mark)}}, nil
	case kept.Seq > told.Seq || kept.Seq > 0 && !here || kept.Seq == told.Seq && kept != told:
		if err := g.store.Tell(ctx, kept); err != nil {
			return answer, err
		}
	}
	now, err := wait(ctx, kept.String(), time.Duration(r.WaitMS)*time.Millisecond)
	if err != nil || now.At == kept.String() {
		return answer, err
	}
	entries, err := g.store.Entries(ctx, kept.Seq, authapi.MaxEntries)
	if err != nil || len(entries) == 0 {
		return answer, err
	}
	// The store may have gone back during the wait. Then these entries follow another one.
	if there, err = g.has(ctx, kept); err != nil || !there {
		return authapi.EndingsResponse{Behind: true}, err
	}
	for _, e := range entries {
		answer.Endings = append(answer.Endings, admin.EndingsOf(e)...)
		kept = adminapi.Head{Seq: e.Seq, Hash: e.Hash}
	}
	answer.Endings = append(answer.Endings, rowOf(kept))
	return answer, nil
}

func rowOf(h adminapi.Head) authapi.Ending {
	return authapi.Ending{ID: authapi.HeadID, Seq: h.Seq, Hash: h.Hash}
}

func (g *Guard) Await(ctx context.Context, head adminapi.Head, until time.Time) (warning string) {
	for {
		told, here, err := g.store.Told(ctx)
		if err == nil && here && told.Seq >= head.Seq {
			return ""
		}
		if err != nil || told.Seq == 0 || !time.Now().Before(until) || !sleep.For(ctx, askEvery) {
			return "No asset service has confirmed yet that it keeps this change. It will be told later."
		}
	}
}

// Accept lets all keys go on as they are, although endings may be lost.
func (g *Guard) Accept(ctx context.Context) error { return g.store.Tell(ctx, adminapi.Head{}) }

// Head returns the end of the log. It also notices a store that went back, before somebody uses a key.
func (g *Guard) Head(ctx context.Context) (adminapi.Head, error) {
	head, err := g.store.Head(ctx)
	if err == nil {
		_, _, err = g.look(ctx, head)
	}
	return head, err
}

// Entries returns entries of the log (apikey.Log).
func (g *Guard) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	return g.store.Entries(ctx, after, limit)
}
