package admin

import (
	"context"
	"errors"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// Broker returns a broker, or a fault of kind NotFound.
func (s *Service) Broker(ctx context.Context, name string) (adminapi.Broker, error) {
	b, err := s.broker(ctx, name)
	return b.View(), err
}

func (s *Service) broker(ctx context.Context, name string) (apikey.Broker, error) {
	b, err := s.store.Broker(ctx, name)
	if errors.Is(err, apikey.ErrNotFound) {
		return b, fault.New(fault.NotFound, fault.URL, "broker", "Not Found")
	}
	return b, err
}

// CreateBroker creates a broker. Its fault lists everything wrong with n. The argument `unread` has more details
// for the fault, about fields of the request that could not be read.
func (s *Service) CreateBroker(
	ctx context.Context, by Actor, n adminapi.NewBroker, unread ...fault.Detail,
) (adminapi.Broker, error) {
	var made apikey.Broker
	err := s.change(ctx, by, audit.CreateBroker, func(now time.Time) (Change, error) {
		made = apikey.Broker{
			Name: n.Name, Title: n.Title, Contact: n.Contact, Blocked: n.Blocked,
			Raise: n.Raise, RaisedUntil: n.RaisedUntil, Created: now, Modified: now,
		}
		found := problems.Of(unread...)
		if err := found.Take(made.Check()); err != nil {
			return Change{}, err
		}
		switch _, err := s.store.Broker(ctx, n.Name); {
		case err == nil:
			taken := fault.New(fault.Conflict, fault.Body, "name", "There is a broker with this name already.")
			return Change{}, found.With(taken)
		case !errors.Is(err, apikey.ErrNotFound):
			return Change{}, err
		}
		if err := s.checkName(ctx, n, found); err != nil {
			return Change{}, err
		}
		return brokerChange(nil, &made)
	})
	return made.View(), err
}

// checkName checks the name of a new broker. The fault names a broker whose name looks the same, unless the caller
// accepts that. It compares at most MaxFound names.
func (s *Service) checkName(ctx context.Context, n adminapi.NewBroker, found *problems.List) error {
	apikey.CheckNewName(n.Name, found)
	if err := found.Err(); err != nil || n.Similar {
		return err
	}
	read := 0
	return eachBroker(ctx, s.store, "", func(b apikey.Broker) error {
		if read++; read <= MaxFound && apikey.Looks(b.Name) == apikey.Looks(n.Name) {
			return fault.New(fault.Conflict, fault.Body, "similar",
				"The name looks like that of the broker %q. Choose another name, or accept that with similar: true.", b.Name)
		}
		return nil
	})
}

// RemoveBroker removes a broker that owns no asset, whose keys are revoked, and whose keys were never used. Its name
// may be given again.
func (s *Service) RemoveBroker(ctx context.Context, by Actor, name string) (adminapi.Broker, error) {
	var gone apikey.Broker
	err := s.change(ctx, by, audit.RemoveBroker, func(time.Time) (c Change, err error) {
		if gone, err = s.broker(ctx, name); err != nil {
			return c, err
		}
		if err := s.checkUnused(ctx, by, name); err != nil {
			return c, err
		}
		c.Broker, c.Remove, c.Entry.Subject = &gone, true, audit.OfBroker(name)
		c.Entry.Before, err = audit.Encode(gone.View())
		return c, err
	})
	return gone.View(), err
}

// checkUnused returns a fault of kind Conflict if the broker has a key that is not revoked or was used, or an asset.
// An asset can only come by a key, so none comes after the check.
func (s *Service) checkUnused(ctx context.Context, by Actor, name string) error {
	refuse := func(says string, args ...any) error {
		return fault.New(fault.Conflict, fault.URL, "broker", says, args...)
	}
	var keys []apikey.Key
	err := eachKey(ctx, s.store, "", func(k apikey.Key) error {
		if k.Broker != name {
			return nil
		}
		if keys = append(keys, k); k.Revoked.IsZero() {
			return refuse("The key %s of the broker is not revoked. Revoke it first.", k.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	used, err := s.lastUses(ctx, keys)
	if err != nil {
		return err
	}
	for id := range used {
		return refuse("The key %s of the broker was used, so the broker stays. Block it instead.", id)
	}
	if s.assets == nil {
		return refuse("This auth service has no --assets-url, so it does not know whether the broker owns assets.")
	}
	owned, _, err := s.assets.Owned(ctx, by.KeyID(), name, "", 1, false)
	if err == nil && len(owned) > 0 {
		err = refuse("The broker owns assets, so it stays. Block it instead.")
	}
	return err
}

// ChangeBroker changes the settings of a broker with the function `patch`. If patch cannot read some fields, patch
// returns a fault of kind Invalid. ChangeBroker then checks the other fields as well, and returns one fault about
// all of them.
func (s *Service) ChangeBroker(
	ctx context.Context, by Actor, name string, patch func(*adminapi.BrokerSettings) error,
) (adminapi.Broker, error) {
	var made apikey.Broker
	err := s.change(ctx, by, audit.ChangeBroker, func(now time.Time) (Change, error) {
		before, err := s.broker(ctx, name)
		if err != nil {
			return Change{}, err
		}
		settings := adminapi.BrokerSettings{
			Title: before.Title, Contact: before.Contact, Blocked: before.Blocked,
			Raise: before.Raise, RaisedUntil: before.RaisedUntil,
		}
		found, err := patched(patch(&settings))
		if err != nil {
			return Change{}, err
		}
		made = before
		made.Title, made.Contact, made.Blocked, made.Modified = settings.Title, settings.Contact, settings.Blocked, now
		made.Raise, made.RaisedUntil = settings.Raise, settings.RaisedUntil
		if err := found.With(made.Check()); err != nil {
			return Change{}, err
		}
		return brokerChange(&before, &made)
	})
	return made.View(), err
}

// patched takes the error of a patch (ChangeBroker). If the error is about fields that could not be read, patched
// returns a list of these problems and no error. It returns any other error unchanged.
func patched(err error) (*problems.List, error) {
	found := &problems.List{}
	if fault.KindOf(err) == fault.Conflict {
		return found, err
	}
	return found, found.Take(err)
}

// brokerChange describes a change of a broker. The argument `before` is nil for a new broker.
func brokerChange(before, after *apikey.Broker) (c Change, err error) {
	c.Broker, c.Entry.Subject = after, audit.OfBroker(after.Name)
	if before != nil {
		if c.Entry.Before, err = audit.Encode(before.View()); err != nil {
			return c, err
		}
	}
	c.Entry.After, err = audit.Encode(after.View())
	return c, err
}
