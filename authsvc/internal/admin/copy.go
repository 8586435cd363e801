package admin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

// ErrOtherKeys is the error of a Copy into a store whose audit log is not the beginning of the source's log.
var ErrOtherKeys = errors.New("the target has API keys of another registry, or keys that changed there")

// Source is a store to copy from.
type Source interface {
	brokerLister
	keyLister
	audit.Lister
	UsageReader
}

// Target is a store to copy to.
type Target interface {
	apikey.Recorder
	// Head returns the end of the audit log.
	Head(ctx context.Context) (adminapi.Head, error)
	// Restore stores one thing that another store has: a broker, a key with the hashes of all its secrets, or an
	// entry of the audit log. The other fields of c are empty. A restored entry becomes the last one of the log.
	// The same thing may be restored again.
	Restore(ctx context.Context, c Change, hashes []string) error
	// Counts returns the counts of a key on the given days, except days without counts.
	Counts(ctx context.Context, id string, days []string) ([]adminapi.Day, error)
}

// Copy copies brokers, keys, the audit log and the usage of keys from one store to another. Nothing else may
// use the stores during the call. Copy may be repeated. It returns ErrOtherKeys if the target's log is not the
// beginning of the source's log.
func Copy(ctx context.Context, from Source, to Target, now time.Time) error {
	if err := copyable(ctx, from, to); err != nil {
		return err
	}
	if err := eachBroker(ctx, from, "", func(b apikey.Broker) error {
		return to.Restore(ctx, Change{Broker: &b}, nil)
	}); err != nil {
		return err
	}
	if err := eachKey(ctx, from, "", func(k apikey.Key) error {
		if err := copyKey(ctx, from, to, k, now); err != nil {
			return fmt.Errorf("copy key %s: %w", k.ID, err)
		}
		return nil
	}); err != nil {
		return err
	}
	// The log comes last, and in order. So if the target has the last entry, the copy is complete.
	return audit.Each(ctx, from, 0, func(e adminapi.Entry) error {
		return to.Restore(ctx, Change{Entry: e}, nil)
	})
}

func copyable(ctx context.Context, from Source, to Target) error {
	there, err := to.Head(ctx)
	if err != nil || there.Seq == 0 {
		return err
	}
	same, err := from.Entries(ctx, there.Seq-1, 1)
	if err != nil {
		return err
	}
	if len(same) == 0 || (adminapi.Head{Seq: same[0].Seq, Hash: same[0].Hash}) != there {
		return ErrOtherKeys
	}
	return nil
}

func copyKey(ctx context.Context, from Source, to Target, k apikey.Key, now time.Time) error {
	var hashes []string
	for _, secret := range k.Secrets {
		hashes = append(hashes, secret.Hash)
	}
	if err := to.Restore(ctx, Change{Key: &k}, hashes); err != nil {
		return err
	}
	uses, err := usesOf(ctx, from, k.ID)
	if err != nil {
		return err
	}
	counts, err := missingCounts(ctx, from, to, k.ID, now)
	if err != nil {
		return err
	}
	return to.AddUsage(ctx, uses, counts)
}

func usesOf(ctx context.Context, from Source, id string) ([]authapi.Use, error) {
	all, err := from.Uses(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	var uses []authapi.Use
	for secret, of := range all[id] {
		for _, use := range of {
			addr, err := netip.ParseAddr(use.From)
			if err != nil {
				return nil, err
			}
			uses = append(uses, authapi.Use{KeyID: id, Secret: secret, Addr: addr, Micros: use.Time.UnixMicro()})
		}
	}
	return uses, nil
}

// missingCounts returns how many requests the target has to add to its counts of a key. Requests that the target has
// already counted are left out, so a copy may be repeated.
func missingCounts(ctx context.Context, from Source, to Target, id string, now time.Time) ([]authapi.Count, error) {
	days := lastDays(now, apikey.UsageDays)
	counted, err := from.Counts(ctx, id, days)
	if err != nil {
		return nil, err
	}
	before, err := to.Counts(ctx, id, days)
	if err != nil {
		return nil, err
	}
	there := map[string]map[string]int64{}
	for _, day := range before {
		there[day.Day] = day.Counts
	}
	var counts []authapi.Count
	for _, day := range counted {
		for class, requests := range day.Counts {
			if more := requests - there[day.Day][class]; more > 0 {
				counts = append(counts, authapi.Count{KeyID: id, Day: day.Day, Class: class, Requests: more})
			}
		}
	}
	return counts, nil
}
