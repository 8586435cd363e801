package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// ReferenceHeader carries a broker's own name for an asset (docs/contract.md, "Own references").
const ReferenceHeader = "Registry-Reference"

// maxClaims is how many ids createReferenced tries. A new one is needed if a store can no longer
// use an id (ErrVoid).
const maxClaims = 10

// ReferenceKey names the reference of a broker in a store.
func ReferenceKey(broker, reference string) string {
	sum := sha256.Sum256([]byte(broker + "\x00" + reference))
	return hex.EncodeToString(sum[:])
}

// Reference returns the reference of an asset and the broker that set it; "" and "" for an asset
// without one.
func (r Record) Reference() (broker, reference string, err error) {
	o, err := decodeOrigin(r.ID, r.Origin)
	return o.Broker, o.Reference, err
}

// sum identifies the fields of a request.
func (in Input) sum() string {
	sum := sha256.Sum256(record.Append(nil, in.Fields))
	return hex.EncodeToString(sum[:])
}

// createReferenced is Create under a reference. The store lets a reference stand for one id, for
// ever, before there is an asset with the id. So whoever finds the id without an asset creates the
// asset under that id (docs/recovery.md, "Own references"). A faulty request leaves a claim, and a later
// one uses it.
func (r *Registry) createReferenced(ctx context.Context, by identity.Identity, in Input) (Created, error) {
	now, key := r.now(), ReferenceKey(by.Broker, in.Reference)
	end, err := r.births.of(key).take(ctx)
	if err != nil {
		return Created{}, fmt.Errorf("wait to create: %w", err)
	}
	defer end()
	former := ""
	for range maxClaims {
		id, err := r.store.ClaimReference(ctx, key, former, newID())
		if err != nil {
			return Created{}, Unavailable("claim a reference", err)
		}
		stored, err := r.store.Get(ctx, id, r.most)
		if errors.Is(err, ErrNotFound) && !errors.Is(err, ErrRemoved) {
			var created Created
			created, err = r.create(ctx, by, in, in.referencedBirth(by, id, now))
			if errors.Is(err, ErrVoid) {
				former = id
				continue
			}
			if !errors.Is(err, ErrExists) {
				return created, err
			}
			stored, err = r.store.Get(ctx, id, r.most) // another process was faster
		}
		if err != nil && !errors.Is(err, ErrRemoved) {
			return Created{}, Unavailable("read asset "+id, err)
		}
		return r.referenced(ctx, by, in, stored, err != nil)
	}
	return Created{}, Unavailable("claim a reference", ErrVoid)
}

// referencedBirth returns the birth of an asset under a reference. An Idempotency-Key makes its
// tokens, so that a repeat with it gets them again.
func (in Input) referencedBirth(by identity.Identity, id string, now time.Time) birth {
	b := birth{id: id, now: now, newID: newID}
	b.origin = origin{Broker: by.Broker, Reference: in.Reference, Fields: in.sum()}
	if in.Seed != nil {
		b.tokens = in.Seed.birth(0, now).tokens
		b.origin.Request, b.origin.Created = in.Seed.fingerprint(in), now.UnixMicro()
	}
	return b
}

// referenced answers a repeat of the creation of stored, which has the reference. Only a repeat
// under the same Idempotency-Key within a day gets the tokens.
func (r *Registry) referenced(
	ctx context.Context, by identity.Identity, in Input, stored Record, removed bool,
) (Created, error) {
	if removed {
		const text = "The asset %s, which has this reference, was removed."
		return Created{}, fault.New(fault.Gone, fault.Header, ReferenceHeader, text, stored.ID)
	}
	now := r.now()
	before, err := stored.origin(now)
	if err != nil {
		return Created{}, err
	}
	if before.Fields != "" && before.Fields != in.sum() {
		const text = "The asset %s has this reference; it was created with other fields."
		return Created{}, fault.New(fault.Conflict, fault.Header, ReferenceHeader, text, stored.ID)
	}
	for _, seed := range append([]Seed{in.Seed}, in.Others...) {
		if seed != nil && before.Request == seed.fingerprint(in) {
			b := in.referencedBirth(by, stored.ID, time.UnixMicro(before.Created))
			b.tokens = seed.birth(0, now).tokens
			return r.repeat(ctx, by, in, b, stored, before.Position)
		}
	}
	a, _ := r.remade(by, in, in.referencedBirth(by, stored.ID, now)) // as repeat does
	in.tell(a.Ignored())
	return Created{Record: stored}, nil
}
