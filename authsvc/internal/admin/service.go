package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Actor is who asks, as the audit log tells.
type Actor struct {
	Name      string // id and name of the key
	Role      identity.Role
	From      string // address
	RequestID string
	Once      *Once // nil: a request that is sent again is another
}

// Once has a request make its change once, however often it is sent and to
// whichever auth service: the audit log tells whether it has.
type Once struct {
	After int64 // number of the log's last entry when the request was prepared, under a RequestID of its own
}

// DoneError is the answer to a request that has made its change already.
type DoneError struct{ Entry adminapi.Entry }

func (e *DoneError) Error() string { return fmt.Sprintf("entry %d has done this already", e.Entry.Seq) }

// OfCommand is who has a command of this machine run, with access to the store.
func OfCommand(name string) Actor {
	return Actor{Name: "command " + name, Role: apikey.Operator, From: "the store's machine"}
}

// Service is what operators can do. It is safe for concurrent use.
type Service struct {
	store  Store
	sealer *Sealer
	log    *slog.Logger
	now    func() time.Time
	found  *found // nil: nobody is told

	checking chan struct{} // holds one while the audit log is checked
}

// NewService returns a service over store.
func NewService(store Store, sealer *Sealer, log *slog.Logger, now func() time.Time) *Service {
	return &Service{store: store, sealer: sealer, log: log, now: now, checking: make(chan struct{}, 1)}
}

// attempts bounds how often a change is tried that others were faster than.
const attempts = 20

// change makes what work decides on, and tells the audit log. Work may be
// called again when something was changed meanwhile.
func (s *Service) change(ctx context.Context, by Actor, action string, work func(now time.Time) (Change, error)) error {
	if by.Role != apikey.Operator {
		return fault.New(fault.Forbidden, fault.Header, "Authorization", "This key may read here and change nothing.")
	}
	for range attempts {
		head, err := s.store.Head(ctx) // before all else: Commit fails if anything has changed since
		if err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
		if err := s.notDone(ctx, by); err != nil {
			return err
		}
		now := s.now().UTC().Truncate(time.Microsecond)
		c, err := work(now)
		if err != nil {
			return err
		}
		c.Entry.Time, c.Entry.Who, c.Entry.From, c.Entry.RequestID, c.Entry.Action = now, by.Name, by.From, by.RequestID, action
		if c.Entry, err = s.sealer.finish(c.Entry, head); err != nil {
			return err
		}
		err = s.store.Commit(ctx, head, c)
		if err == nil {
			// Whoever keeps the log has a copy of where the audit log was.
			s.log.Info("audit", "seq", c.Entry.Seq, "hash", c.Entry.Hash, "action", action, "subject", c.Entry.Subject, "who", by.Name, "from", by.From)
			return nil
		}
		if !errors.Is(err, ErrStale) {
			return fmt.Errorf("%s: %w", action, err)
		}
		select {
		case <-time.After(rand.N(20 * time.Millisecond)):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", action, ctx.Err())
		}
	}
	return fault.New(fault.Conflict, fault.Body, "data", "Others change keys or brokers all the time; repeat the request.")
}

// notDone returns a DoneError if the log tells of a request that is to be done once.
func (s *Service) notDone(ctx context.Context, by Actor) error {
	if by.Once == nil {
		return nil
	}
	for after := by.Once.After; ; {
		entries, err := s.store.Entries(ctx, after, scanPage)
		if err != nil {
			return fmt.Errorf("look for request %s: %w", by.RequestID, err)
		}
		for _, e := range entries {
			after = e.Seq
			if e.RequestID == by.RequestID {
				return &DoneError{e}
			}
		}
		if len(entries) < scanPage {
			return nil
		}
	}
}

// CreateBroker makes a broker. A fault tells everything that is wrong with n, and
// unread: the fields of n that could not be read.
func (s *Service) CreateBroker(
	ctx context.Context, by Actor, n adminapi.NewBroker, unread ...fault.Detail,
) (adminapi.Broker, error) {
	var made apikey.Broker
	err := s.change(ctx, by, "broker.create", func(now time.Time) (Change, error) {
		made = apikey.Broker{Name: n.Name, Title: n.Title, Contact: n.Contact, Blocked: n.Blocked, Created: now, Modified: now}
		found := problems.Of(unread...)
		if err := found.Take(made.Check()); err != nil {
			return Change{}, err
		}
		switch _, err := s.store.Broker(ctx, n.Name); {
		case err == nil:
			taken := fault.New(fault.Conflict, fault.Body, "name", "There is a broker of this name already.")
			return Change{}, found.With(taken)
		case !errors.Is(err, ErrNotFound):
			return Change{}, err
		}
		if err := found.Err(); err != nil {
			return Change{}, err
		}
		return brokerChange(nil, &made)
	})
	return viewBroker(made), err
}

// ChangeBroker changes what is said of a broker, as patch does.
// Patch may return a fault of kind Invalid for fields that it could not read.
// ChangeBroker then checks the others, and returns one fault for all.
func (s *Service) ChangeBroker(ctx context.Context, by Actor, name string, patch func(*adminapi.BrokerSettings) error) (adminapi.Broker, error) {
	var made apikey.Broker
	err := s.change(ctx, by, "broker.change", func(now time.Time) (Change, error) {
		before, err := s.broker(ctx, name)
		if err != nil {
			return Change{}, err
		}
		settings := adminapi.BrokerSettings{Title: before.Title, Contact: before.Contact, Blocked: before.Blocked}
		found, err := patched(patch(&settings))
		if err != nil {
			return Change{}, err
		}
		made = before
		made.Title, made.Contact, made.Blocked, made.Modified = settings.Title, settings.Contact, settings.Blocked, now
		if err := found.With(made.Check()); err != nil {
			return Change{}, err
		}
		return brokerChange(&before, &made)
	})
	return viewBroker(made), err
}

func brokerChange(before, after *apikey.Broker) (c Change, err error) {
	c.Broker, c.Entry.Subject = after, ofBroker+after.Name
	if before != nil {
		if c.Entry.Before, err = told(viewBroker(*before)); err != nil {
			return c, err
		}
	}
	c.Entry.After, err = told(viewBroker(*after))
	return c, err
}

func (s *Service) broker(ctx context.Context, name string) (apikey.Broker, error) {
	b, err := s.store.Broker(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return b, fault.New(fault.NotFound, fault.URL, "broker", "Not Found")
	}
	return b, err
}

// Broker returns a broker.
func (s *Service) Broker(ctx context.Context, name string) (adminapi.Broker, error) {
	b, err := s.broker(ctx, name)
	return viewBroker(b), err
}

// CreateKey makes a key, and returns it with its secret, which is known to
// nobody afterwards. A fault tells everything that is wrong with n, and unread:
// the fields of n that could not be read.
func (s *Service) CreateKey(
	ctx context.Context, by Actor, n adminapi.NewKey, unread ...fault.Detail,
) (made adminapi.Key, secret string, err error) {
	secret, hash := mint()
	var k apikey.Key
	err = s.change(ctx, by, "key.create", func(now time.Time) (Change, error) {
		found := problems.Of(unread...)
		k = apikey.Key{
			ID: newID(now), Broker: n.Broker, Settings: settings(n.KeySettings, found), Created: now, Modified: now,
			Secrets: []apikey.Secret{{Number: 1, Hash: hash, Created: now}},
		}
		if err := s.checkNew(ctx, k, now, found); err != nil {
			return Change{}, err
		}
		return keyChange(nil, &k, hash)
	})
	if err != nil {
		return made, "", err
	}
	return s.showDone(ctx, k), secret, nil
}

// checkNew returns a fault of all that is wrong with a new key, beside what was
// found before.
func (s *Service) checkNew(ctx context.Context, k apikey.Key, now time.Time, found *problems.List) error {
	if err := found.Take(k.Check()); err != nil {
		return err
	}
	if expires := k.Settings.Expires; !expires.IsZero() && !expires.After(now) {
		found.Add("expires", timeOver)
	}
	if k.Broker != "" {
		if _, err := s.store.Broker(ctx, k.Broker); errors.Is(err, ErrNotFound) {
			found.Add("broker", "There is no such broker: make it first.")
		} else if err != nil {
			return err
		}
	}
	return found.Err()
}

// ChangeKey changes what is said of a key, as patch does. Patch may
// return a fault of kind Invalid for fields that it could not read. ChangeKey
// then checks the others, and returns one fault for all.
func (s *Service) ChangeKey(ctx context.Context, by Actor, id string, patch func(*adminapi.KeySettings) error) (adminapi.Key, error) {
	return s.changeKey(ctx, by, "key.change", id, "", func(k apikey.Key, now time.Time) (apikey.Key, error) {
		v := viewSettings(k.Settings)
		found, err := patched(patch(&v))
		if err != nil {
			return k, err
		}
		k, err = k.Set(settings(v, found), now)
		return k, found.With(err)
	})
}

// patched returns the problems of a patch that could not read every field. Any
// other error of a patch is returned as it is.
func patched(err error) (*problems.List, error) {
	found := &problems.List{}
	if fault.KindOf(err) == fault.Conflict {
		return found, err
	}
	return found, found.Take(err)
}

// RotateKey gives a key a new secret, which it returns. The one before stays
// good for a time of grace. A fault tells everything that is wrong with the
// request, and unread: the fields of it that could not be read.
func (s *Service) RotateKey(
	ctx context.Context, by Actor, id string, grace time.Duration, unread ...fault.Detail,
) (made adminapi.Key, secret string, err error) {
	secret, hash := mint()
	made, err = s.changeKey(ctx, by, "key.rotate", id, hash, func(k apikey.Key, now time.Time) (apikey.Key, error) {
		found := problems.Of(unread...)
		k, err := k.Rotate(hash, grace, now)
		return k, found.With(err)
	})
	if err != nil {
		return made, "", err
	}
	return made, secret, nil
}

// RevokeKey ends a key, at once and for good.
func (s *Service) RevokeKey(ctx context.Context, by Actor, id string) (adminapi.Key, error) {
	return s.changeKey(ctx, by, "key.revoke", id, "", func(k apikey.Key, now time.Time) (apikey.Key, error) { return k.Revoke(now) })
}

func (s *Service) changeKey(ctx context.Context, by Actor, action, id, newHash string, work func(apikey.Key, time.Time) (apikey.Key, error)) (adminapi.Key, error) {
	var after apikey.Key
	err := s.change(ctx, by, action, func(now time.Time) (Change, error) {
		before, err := s.key(ctx, id)
		if err != nil {
			return Change{}, err
		}
		if after, err = work(before, now); err != nil {
			return Change{}, err
		}
		return keyChange(&before, &after, newHash)
	})
	if err != nil {
		return adminapi.Key{}, err
	}
	return s.showDone(ctx, after), nil
}

// showDone shows a key as a change has made it. The change is made, and its
// secret is to be had this once: what cannot be read beside the key is left out.
func (s *Service) showDone(ctx context.Context, k apikey.Key) adminapi.Key {
	made, err := s.show(ctx, k)
	if err != nil {
		s.log.Warn("a key was changed, and is shown without its state and uses", "key", k.ID, "error", err)
		return viewKey(k)
	}
	return made
}

func keyChange(before, after *apikey.Key, newHash string) (c Change, err error) {
	c.Key, c.NewHash, c.Entry.Subject = after, newHash, ofKey+after.ID
	if before != nil {
		if c.Entry.Before, err = told(viewKey(*before)); err != nil {
			return c, err
		}
	}
	c.Entry.After, err = told(viewKey(*after))
	return c, err
}

func (s *Service) key(ctx context.Context, id string) (apikey.Key, error) {
	k, err := s.store.Key(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return k, fault.New(fault.NotFound, fault.URL, "key", "Not Found")
	}
	return k, err
}
