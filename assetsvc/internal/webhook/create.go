package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Creation asks for a new endpoint.
type Creation struct {
	Fields  record.Object // the fields that the client sent
	Version string        // version of the API that the client uses; messages show assets in this version
	// Seeds are secrets that the gateway derives from an API key and an Idempotency-Key: one seed for each secret of
	// the registry, with the seed of the current secret first. With seeds, a repeated creation returns the same
	// endpoint. Without seeds, it creates another endpoint (docs/contract.md, "Idempotency").
	Seeds [][]byte
}

const (
	repeatable = 24 * time.Hour // how long a creation can be repeated; later the same key creates another endpoint
	maxUses    = MaxOfBroker + 1
)

// Create creates an endpoint, and returns it with its symmetric secret. Until the endpoint has answered a
// challenge, only challenges are sent to it.
func (s *Service) Create(ctx context.Context, by identity.Identity, in Creation) (
	created Shown, secret string, err error,
) {
	if by.Role != identity.Broker && by.Role != identity.Administrator {
		return created, "", forbidden("only a broker's or an administrator's API key makes webhooks")
	}
	f, err := parseCreation(in.Fields, s.c.CheckURL)
	if err != nil {
		return created, "", err
	}
	if by.TestOnly() && f.mode != testMode {
		const text = "This API key is test-only (level t): send mode test."
		return created, "", fault.New(fault.Forbidden, fault.Body, "mode", text)
	}
	e, err := s.create(ctx, by, in, f)
	if err != nil {
		return created, "", err
	}
	if created, err = s.showOne(ctx, e); err != nil {
		return created, "", err
	}
	secret, _, err = s.c.Seals.Secret(e.Seal)
	return created, secret, err
}

func (s *Service) create(ctx context.Context, by identity.Identity, in Creation, f fields) (Endpoint, error) {
	e := Endpoint{
		ID: newID(), Broker: by.Broker, ByAdmin: by.Role == identity.Administrator, KeyID: by.KeyID,
		URL: f.url, Version: in.Version, Mode: f.mode, Whole: f.whole, Filters: f.filters,
		Created:  s.c.Now().UTC().Truncate(time.Millisecond), // stores keep milliseconds
		Progress: Progress{State: Unverified},
	}
	if f.paused {
		e.State, e.Reason = Disabled, Paused
	}
	for range changeTries {
		if len(in.Seeds) > 0 {
			before, found, err := s.created(ctx, in)
			if found || err != nil {
				return before, err
			}
			sums := in.fingerprint(in.Seeds[0])
			e.ID, e.Request, e.Same = before.ID, sums.Bytes, sums.Canonical
		}
		var err error
		if e.Position, err = s.start(ctx, f.offset); err != nil {
			return e, err
		}
		if e.Seal, err = s.c.Seals.New(); err != nil {
			return e, err
		}
		switch err := s.c.Store.Put(ctx, e); {
		case err == nil:
			return e, nil
		case errors.Is(err, ErrBrokerFull):
			return e, forbidden(fmt.Sprintf("the broker has %d webhooks, the most it may have; remove one first", MaxOfBroker))
		case errors.Is(err, ErrFull):
			const says = "the registry has %d webhooks, the most it can have; ask its operator"
			return e, forbidden(fmt.Sprintf(says, MaxEndpoints))
		case !errors.Is(err, ErrStale): // ErrStale: another process has created this endpoint at the same moment
			return e, unavailable("create a webhook", err)
		}
	}
	return e, unavailable("create a webhook", ErrStale)
}

// created returns the endpoint that an earlier run of the same creation has made. If no run has made an
// endpoint, found is false, and e has only the id for the new endpoint.
func (s *Service) created(ctx context.Context, in Creation) (e Endpoint, found bool, err error) {
	free := ""
	for i, seed := range in.Seeds {
		for use := 0; ; use++ {
			if use == maxUses {
				const text = "This key was used %d times; make a new one."
				return e, false, fault.New(fault.Invalid, fault.Header, "Idempotency-Key", text, maxUses)
			}
			id := derivedID(seed, use)
			e, err = s.c.Store.Endpoint(ctx, id)
			if errors.Is(err, ErrNotFound) {
				if i == 0 {
					free = id
				}
				break
			}
			if err != nil {
				return e, false, unavailable("read webhook "+id, err)
			}
			if s.c.Now().Sub(e.Created).Abs() >= repeatable {
				continue
			}
			if !in.fingerprint(seed).Match(record.Sums{Canonical: e.Same, Bytes: e.Request}) {
				const text = "Another request was made with this key within 24 hours."
				return e, false, fault.New(fault.Invalid, fault.Header, "Idempotency-Key", text)
			}
			return e, true, nil
		}
	}
	return Endpoint{ID: free}, false, nil
}

// newID returns a random id of the form that all ids of the registry have (docs/contract.md, "Identifiers").
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // Read never fails
	return hex.EncodeToString(id[:])
}

// derivedID returns the id of an endpoint that is created with a seed.
func derivedID(seed []byte, use int) string {
	return hex.EncodeToString(derive(seed, "webhook "+strconv.Itoa(use))[:16])
}

func derive(seed []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, seed)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// fingerprint identifies a creation with a seed. Stores keep fingerprints for a day, so a new release must also
// compute the fingerprints of the old release.
func (c Creation) fingerprint(seed []byte) record.Sums {
	keyed := func() hash.Hash { return hmac.New(sha256.New, derive(seed, "webhook fingerprint")) }
	return record.SumsOf(keyed, c.Version+" ", c.Fields)
}
