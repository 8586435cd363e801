package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

// ErrAlone is the error of a Commit that is done, although no replica of the store has it yet.
var ErrAlone = errors.New("no replica has confirmed the change")

// Second is told of each ending before the change is acknowledged.
type Second interface {
	// Await waits until the endings up to an entry are kept in a second place, but not after the given time. It returns
	// a sentence if they are not.
	Await(ctx context.Context, head adminapi.Head, until time.Time) (warning string)
}

// WithSecond returns a service that waits for a second place (Second).
func (s *Service) WithSecond(second Second) *Service {
	with := *s
	with.second = second
	return &with
}

// Kinds of endings, which are parts of their ids.
const (
	endsKind   = " ends"
	rightsKind = " rights"
)

// EndingsOf returns what an entry of the audit log takes away. An entry that gives an ended right back returns an
// ending without an end.
func EndingsOf(e adminapi.Entry) (found []authapi.Ending) {
	ends, kinds := authapi.Ending{}, []string{endsKind}
	lesser := false
	switch {
	case e.Before == nil || e.After == nil: // a creation or a removal
		return nil
	case strings.HasPrefix(e.Subject, audit.OfBroker("")):
		before, after := decoded[adminapi.Broker](e.Before), decoded[adminapi.Broker](e.After)
		if before.Blocked == after.Blocked {
			return nil
		}
		if after.Blocked {
			ends.Closed = &e.Time
		}
	case strings.HasPrefix(e.Subject, audit.OfKey("")):
		before, after := decoded[adminapi.Key](e.Before), decoded[adminapi.Key](e.After)
		ends, lesser = endsOf(after), isLess(after.KeySettings, before.KeySettings)
		if e.Action != audit.EndAgain && !lesser && reflect.DeepEqual(ends, endsOf(before)) {
			return nil
		}
		if lesser || e.Action == audit.EndAgain { // the latter replaces the ending that it has carried out
			kinds = append(kinds, rightsKind)
		}
	default:
		return nil
	}
	for _, kind := range kinds {
		ends.ID, ends.Seq, ends.Hash, ends.Subject = e.Subject+kind, e.Seq, e.Hash, e.Subject
		found = append(found, ends)
		ends = authapi.Ending{Rights: lesser}
	}
	return found
}

// decoded decodes the state in an entry. The log holds what this service has encoded.
func decoded[T any](state json.RawMessage) (value T) {
	_ = json.Unmarshal(state, &value)
	return value
}

func endsOf(k adminapi.Key) authapi.Ending {
	e := authapi.Ending{Closed: k.Revoked, Expires: k.Expires, Until: map[int]time.Time{}}
	for _, s := range k.Secrets {
		e.Newest = max(e.Newest, s.Number)
		if s.Until != nil {
			e.Until[s.Number] = *s.Until
		}
	}
	return e
}

// isLess reports whether a key with the settings s lacks a right that it has with the other settings.
func isLess(s, other adminapi.KeySettings) bool {
	lacks := func(level rune) bool { return !strings.ContainsAny(s.Levels, string(level)+"0") } // 0 is every level
	foreign := func(network string) bool {
		inner, err := netip.ParsePrefix(network)
		return err != nil || !slices.ContainsFunc(s.Allow, func(outer string) bool {
			p, err := netip.ParsePrefix(outer)
			return err == nil && p.Bits() <= inner.Bits() && p.Contains(inner.Addr())
		})
	}
	return s.Role != other.Role || s.Test && !other.Test || strings.ContainsFunc(other.Levels, lacks) ||
		len(s.Allow) > 0 && (len(other.Allow) == 0 || slices.ContainsFunc(other.Allow, foreign))
}

// ofService is the actor of what the service does by itself.
var ofService = Actor{Name: "authsvc", Role: apikey.Operator, From: "the store of keys went back"}

// errNothing ends a change that has nothing to do.
var errNothing = errors.New("there is nothing to change")

func (s *Service) byItself(ctx context.Context, action string, work func(time.Time) (Change, error)) error {
	if err := s.change(ctx, ofService, action, work); !errors.Is(err, errNothing) {
		return err
	}
	return nil
}

// NoteLoss begins a new chain of the audit log, unless the log has one that covers the lost entry already. The lost
// entry was the newest before the store went back. NoteLoss returns the entry that begins the chain, and how many
// numbers of entries are lost; 0 if the chain had begun already.
func (s *Service) NoteLoss(ctx context.Context, lost adminapi.Head) (mark adminapi.Head, entries int64, err error) {
	err = s.byItself(ctx, adminapi.LogLost, func(time.Time) (c Change, err error) {
		entries = 0
		if mark, err = s.markOf(ctx, lost); err != nil || mark.Seq > 0 {
			return c, cmp.Or(err, errNothing)
		}
		head, err := s.store.Head(ctx)
		if err != nil {
			return c, err
		}
		entries = max(1, lost.Seq-head.Seq)
		c.Skip, c.Entry.Subject = lost.Seq, audit.LogSubject
		c.Entry.After, err = audit.Encode(adminapi.Lost{Lost: lost.String()})
		return c, err
	})
	if err == nil && mark.Seq == 0 {
		mark, err = s.markOf(ctx, lost)
	}
	return mark, entries, err
}

// markOf returns the entry that begins the chain after the loss of an entry. It is zero if there is none.
func (s *Service) markOf(ctx context.Context, lost adminapi.Head) (mark adminapi.Head, err error) {
	err = audit.Each(ctx, s.store, lost.Seq, func(e adminapi.Entry) error {
		if e.Action == adminapi.LogLost {
			noted, err := adminapi.ParseHead(decoded[adminapi.Lost](e.After).Lost)
			if err == nil && noted.Seq >= lost.Seq {
				mark = adminapi.Head{Seq: e.Seq, Hash: e.Hash}
			}
		}
		return nil
	})
	return mark, err
}

// EndAgain ends a right whose end the store has lost. It does nothing if the store does not have the key or broker, or
// if the right has ended.
func (s *Service) EndAgain(ctx context.Context, e authapi.Ending) error {
	err := s.byItself(ctx, audit.EndAgain, func(now time.Time) (Change, error) {
		if id, ok := audit.KeyOf(e.Subject); ok {
			before, err := s.store.Key(ctx, id)
			after, changed := before.EndAgain(e, now)
			if errors.Is(err, apikey.ErrNotFound) || err == nil && !changed {
				err = errNothing
			}
			if err != nil {
				return Change{}, err
			}
			return keyChange(&before, &after, "")
		}
		name, _ := audit.BrokerOf(e.Subject)
		before, err := s.store.Broker(ctx, name)
		if errors.Is(err, apikey.ErrNotFound) || err == nil && (before.Blocked || e.Closed == nil) {
			err = errNothing
		}
		if err != nil {
			return Change{}, err
		}
		after := before
		after.Blocked, after.Modified = true, now
		return brokerChange(&before, &after)
	})
	if err != nil {
		return fmt.Errorf("end a right of %s again: %w", e.Subject, err)
	}
	return nil
}
