package admin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

// ErrOtherKeys is returned for a store whose audit log is another than the one
// to be copied into it.
var ErrOtherKeys = errors.New("it has API keys of another registry, or some were changed there since")

// Copy copies brokers, keys, the audit log and the usage of keys from one store
// to another, which nobody else uses. It may be repeated.
func Copy(ctx context.Context, from, to Store, now time.Time) error {
	if err := copyable(ctx, from, to); err != nil {
		return err
	}
	// The log last, from its beginning: its end is what says that all is there.
	for after := ""; ; {
		brokers, err := from.Brokers(ctx, after, scanPage)
		if err != nil {
			return err
		}
		for _, b := range brokers {
			after = b.Name
			if err := to.Restore(ctx, Change{Broker: &b}, nil); err != nil {
				return err
			}
		}
		if len(brokers) < scanPage {
			break
		}
	}
	for after := ""; ; {
		keys, err := from.Keys(ctx, after, scanPage)
		if err != nil {
			return err
		}
		for _, k := range keys {
			after = k.ID
			if err := copyKey(ctx, from, to, k, now); err != nil {
				return fmt.Errorf("copy key %s: %w", k.ID, err)
			}
		}
		if len(keys) < scanPage {
			break
		}
	}
	for after := int64(0); ; {
		entries, err := from.Entries(ctx, after, scanPage)
		if err != nil {
			return err
		}
		for _, e := range entries {
			after = e.Seq
			if err := to.Restore(ctx, Change{Entry: e}, nil); err != nil {
				return err
			}
		}
		if len(entries) < scanPage {
			return nil
		}
	}
}

// copyable tells whether the log of the one store goes on that of the other.
func copyable(ctx context.Context, from, to Store) error {
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

func copyKey(ctx context.Context, from, to Store, k apikey.Key, now time.Time) error {
	var hashes []string
	for _, secret := range k.Secrets {
		hashes = append(hashes, secret.Hash)
	}
	if err := to.Restore(ctx, Change{Key: &k}, hashes); err != nil {
		return err
	}
	all, err := from.Uses(ctx, []string{k.ID})
	if err != nil {
		return err
	}
	var uses []authapi.Use
	for secret, of := range all[k.ID] {
		for _, use := range of {
			addr, err := netip.ParseAddr(use.From)
			if err != nil {
				return err
			}
			uses = append(uses, authapi.Use{KeyID: k.ID, Secret: secret, Addr: addr, Micros: use.Time.UnixMicro()})
		}
	}
	days := lastDays(now, UsageDays)
	counted, err := from.Counts(ctx, k.ID, days)
	if err != nil {
		return err
	}
	before, err := to.Counts(ctx, k.ID, days)
	if err != nil {
		return err
	}
	there := map[string]map[string]int64{}
	for _, day := range before {
		there[day.Day] = day.Counts
	}
	var counts []authapi.Count
	for _, day := range counted {
		for class, requests := range day.Counts {
			if more := requests - there[day.Day][class]; more > 0 {
				counts = append(counts, authapi.Count{KeyID: k.ID, Day: day.Day, Class: class, Requests: more})
			}
		}
	}
	return to.AddUsage(ctx, uses, counts)
}
