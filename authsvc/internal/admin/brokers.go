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
		if err := found.Err(); err != nil {
			return Change{}, err
		}
		return brokerChange(nil, &made)
	})
	return made.View(), err
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
