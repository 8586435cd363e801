package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Positions are the reads of the feed that a Service needs.
type Positions interface {
	// Horizon returns the position up to which every change is stored.
	Horizon(ctx context.Context) (int64, error)
	// Next returns the position of the first entry of a mode after a position, or 0 if there is no entry.
	Next(ctx context.Context, mode string, after int64) (int64, error)
}

// ServiceConfig configures a Service. All fields are required.
type ServiceConfig struct {
	Store    Store
	Feed     Positions
	Seals    Seals
	CheckURL func(url string) error // returns an error that says, in our words, why nothing may be sent to an address
	Now      func() time.Time
}

// Service has the use cases of webhooks (docs/contract.md, "Webhooks"). A broker's key manages the endpoints of
// its broker. An administrator's key manages the endpoints of administrators. It can also see, pause, resume,
// replay and remove all other endpoints. The key of a service of the registry can do these five things with all
// endpoints, but cannot create an endpoint. A request that is refused changes nothing.
//
// The methods return faults: Forbidden, NotFound, Invalid, Conflict or Unavailable. A Service is safe for
// concurrent use.
type Service struct{ c ServiceConfig }

// NewService returns a Service.
func NewService(c ServiceConfig) *Service { return &Service{c} }

// Shown is an endpoint as its owner sees it.
type Shown struct {
	Endpoint
	PublicKey string // "whpk_..."; "" if no secret of the registry opens the seed

	// Behind is the age of the oldest change after the position; 0: there is no such change. The position of an
	// endpoint with filters is stored once a minute (keepOften). Until it is stored, Behind also counts changes that
	// do not meet the filters.
	Behind time.Duration
}

// overlap is the time after a rotation in which messages are also signed with the former secret.
const overlap = 24 * time.Hour

// changeTries is the number of attempts to store a change while other processes change the endpoint too.
const changeTries = 8

// MaxPage is the largest number of endpoints that List returns.
const MaxPage = 100

// List returns at most `limit` endpoints in the order of their ids, beginning with the first id that is greater
// than the argument `after`. A broker gets the endpoints of its keys. An administrator gets all endpoints, or only
// the endpoints that the keys of the argument `broker` have made.
func (s *Service) List(ctx context.Context, by identity.Identity, broker, after string, limit int) ([]Shown, error) {
	switch {
	case by.Role == identity.Broker:
		broker = by.Broker
	case !supervises(by):
		return nil, forbidden(strangers)
	}
	found, err := s.c.Store.Endpoints(ctx, broker, after, min(limit, MaxPage))
	if err != nil {
		return nil, unavailable("list webhooks", err)
	}
	return s.show(ctx, found)
}

// Get returns an endpoint.
func (s *Service) Get(ctx context.Context, by identity.Identity, id string) (Shown, error) {
	e, err := s.find(ctx, by, id)
	if err != nil {
		return Shown{}, err
	}
	return s.showOne(ctx, e)
}

// Change changes the URL or the state of an endpoint to the values that a caller sent. A new URL must answer a
// challenge. Only the owner may change the URL.
func (s *Service) Change(ctx context.Context, by identity.Identity, id string, sent record.Object) (Shown, error) {
	return s.update(ctx, by, id, func(e Endpoint) (Endpoint, error) {
		c, err := parseChange(sent, s.c.CheckURL)
		if err != nil {
			return e, err
		}
		if c.url != "" && c.url != e.URL {
			if !owns(by, e) {
				return e, forbidden(ownersOnly)
			}
			e = e.movedTo(c.url)
		}
		switch {
		case c.state == Active && e.State == Disabled:
			return e.resumed(by)
		case c.state == Disabled && !owns(by, e):
			e.State, e.Reason = Disabled, Stopped
		case c.state == Disabled && e.State != Disabled:
			e.State, e.Reason = Disabled, Paused
		}
		return e, nil
	})
}

// Replay sends the changes after an offset again. Without an offset, the endpoint continues at its position. An
// offset after the newest change has the effect of the newest change's offset. A disabled endpoint is resumed.
func (s *Service) Replay(ctx context.Context, by identity.Identity, id string, sent record.Object) (Shown, error) {
	return s.update(ctx, by, id, func(e Endpoint) (Endpoint, error) {
		from, err := parseReplay(sent)
		if err != nil {
			return e, err
		}
		if from > 0 {
			if e.Position, err = s.start(ctx, from); err != nil {
				return e, err
			}
		}
		return e.resumed(by)
	})
}

// Rotate gives an endpoint new secrets, and returns the symmetric one. For a day, messages are signed with the
// former secrets too. Only the owner may rotate.
func (s *Service) Rotate(ctx context.Context, by identity.Identity, id string, sent record.Object) (
	rotated Shown, secret string, err error,
) {
	rotated, err = s.update(ctx, by, id, func(e Endpoint) (Endpoint, error) {
		if !owns(by, e) {
			return e, forbidden(ownersOnly)
		}
		if err := parseRotate(sent); err != nil {
			return e, err
		}
		seal, err := s.c.Seals.New()
		if err != nil {
			return e, err
		}
		e.OldSeal, e.OldUntil, e.Seal = e.Seal, s.c.Now().Add(overlap).UTC().Truncate(time.Millisecond), seal
		return e, nil
	})
	if err != nil {
		return Shown{}, "", err
	}
	secret, _, err = s.c.Seals.Secret(rotated.Seal)
	return rotated, secret, err
}

// Remove removes an endpoint. Nothing is sent to it any more.
func (s *Service) Remove(ctx context.Context, by identity.Identity, id string) error {
	e, err := s.find(ctx, by, id)
	if err == nil {
		err = checkMode(by, e)
	}
	if err != nil {
		return err
	}
	if err := s.c.Store.Remove(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
		return unavailable("remove webhook "+id, err)
	}
	return nil
}

// update calls the function `change` with an endpoint. It stores the result, unless the endpoint stays the same. If
// the stored endpoint was changed meanwhile, update reads the endpoint again and repeats the call.
func (s *Service) update(
	ctx context.Context, by identity.Identity, id string, change func(Endpoint) (Endpoint, error),
) (Shown, error) {
	for range changeTries {
		before, err := s.find(ctx, by, id)
		if err == nil {
			err = checkMode(by, before)
		}
		if err != nil {
			return Shown{}, err
		}
		next, err := change(before)
		if err != nil {
			return Shown{}, err
		}
		if next == before {
			return s.showOne(ctx, next)
		}
		switch err := s.c.Store.Put(ctx, next); {
		case err == nil:
			return s.showOne(ctx, next)
		case !errors.Is(err, ErrStale):
			return Shown{}, unavailable("change webhook "+id, err)
		}
	}
	return Shown{}, fault.New(fault.Conflict, fault.Body, "data", "Others keep changing the webhook; repeat the request.")
}

// checkMode returns a fault if the caller's key is for test assets only and the endpoint has another mode.
func checkMode(by identity.Identity, e Endpoint) error {
	if by.TestOnly() && e.Mode != testMode {
		return forbidden("this API key is test-only (level t), and changes webhooks of mode test only")
	}
	return nil
}

// find returns an endpoint that the caller may see.
func (s *Service) find(ctx context.Context, by identity.Identity, id string) (Endpoint, error) {
	if by.Role != identity.Broker && !supervises(by) {
		return Endpoint{}, forbidden(strangers)
	}
	e, err := s.c.Store.Endpoint(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !owns(by, e) && !supervises(by):
		return Endpoint{}, fault.New(fault.NotFound, fault.URL, "webhook", "Not Found")
	case err != nil:
		return Endpoint{}, unavailable("read webhook "+id, err)
	}
	return e, nil
}

// show returns endpoints in the form that their owners see. It reads the feed only once for endpoints with the
// same position.
func (s *Service) show(ctx context.Context, found []Endpoint) ([]Shown, error) {
	type place struct {
		mode     string
		position int64
	}
	next := map[place]int64{}
	shown := make([]Shown, len(found))
	for i, e := range found {
		_, public, err := s.c.Seals.Secret(e.Seal)
		if err != nil && !errors.Is(err, ErrSealed) {
			return nil, fmt.Errorf("show webhook %s: %w", e.ID, err)
		}
		at := place{e.Mode, e.Position}
		first, known := next[at]
		if !known {
			if first, err = s.c.Feed.Next(ctx, e.Mode, e.Position); err != nil {
				return nil, err
			}
			next[at] = first
		}
		shown[i] = Shown{Endpoint: e, PublicKey: public}
		if first > 0 {
			shown[i].Behind = max(0, s.c.Now().Sub(time.UnixMicro(first)))
		}
	}
	return shown, nil
}

func (s *Service) showOne(ctx context.Context, e Endpoint) (Shown, error) {
	shown, err := s.show(ctx, []Endpoint{e})
	if err != nil {
		return Shown{}, err
	}
	return shown[0], nil
}

// start returns the position of a new or replayed endpoint that asks for changes after an offset. The offset 0
// stands for the newest change.
func (s *Service) start(ctx context.Context, offset int64) (int64, error) {
	horizon, err := s.c.Feed.Horizon(ctx)
	if err != nil {
		return 0, err
	}
	if offset == 0 || offset > horizon {
		return horizon, nil
	}
	return offset, nil
}

// movedTo returns the endpoint with a new address, which has to answer a challenge. A paused or stopped endpoint
// stays paused or stopped. If the former address has never answered a challenge, the wait for the next challenge
// stays the same.
func (e Endpoint) movedTo(url string) Endpoint {
	e.URL = url
	if e.Verified {
		e.Next = time.Time{}
	}
	e.Verified = false
	if e.Reason != Paused && e.Reason != Stopped {
		e.State, e.Reason = Unverified, ""
	}
	return e.forgiven()
}

// resumed returns the endpoint, changed so that the sender sends to it immediately. If the endpoint has answered a
// challenge, the sender sends changes, otherwise a challenge. Challenges have separate limits (challenged). If an
// administrator has stopped the endpoint, only an administrator or a service can resume it.
func (e Endpoint) resumed(by identity.Identity) (Endpoint, error) {
	if e.Reason == Stopped && !supervises(by) {
		return e, forbidden("an administrator has stopped this webhook; ask one to resume it")
	}
	e.State, e.Reason, e.Next = Unverified, "", time.Time{}
	if e.Verified {
		e.State = Active
	}
	return e.forgiven(), nil
}

// forgiven returns the endpoint with its failures reset.
func (e Endpoint) forgiven() Endpoint {
	e.Failures, e.FailedAt, e.LastError = 0, time.Time{}, ""
	return e
}

const (
	strangers  = "only a broker's or an administrator's API key uses webhooks"
	ownersOnly = "only the owner of a webhook does this; an administrator may pause, resume, replay and remove it"
)

// supervises reports whether the caller may see, pause, resume, replay and remove all endpoints.
func supervises(by identity.Identity) bool {
	return by.Role == identity.Administrator || by.Role == identity.Service
}

// owns reports whether the caller may do everything with an endpoint.
func owns(by identity.Identity, e Endpoint) bool {
	if e.ByAdmin {
		return by.Role == identity.Administrator
	}
	return by.Role == identity.Broker && by.Broker == e.Broker
}

func forbidden(reason string) error {
	return fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden: %s", reason)
}

// unavailable returns the fault for a store that did not answer. The arguments `doing` and `cause` appear only in
// the log.
func unavailable(doing string, cause error) error {
	const text = "The registry cannot reach its data now; repeat the request."
	return fmt.Errorf("%s: %w: %w", doing, fault.New(fault.Unavailable, fault.URL, "store", text), cause)
}
