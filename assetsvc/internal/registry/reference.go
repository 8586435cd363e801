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

// maxClaims is how many ids createReferenced tries. If the store can no longer use an id (ErrVoid), createReferenced
// tries another id.
const maxClaims = 10

// ReferenceKey returns the key under which a store keeps the reference of a broker.
func ReferenceKey(broker, reference string) string {
	sum := sha256.Sum256([]byte(broker + "\x00" + reference))
	return hex.EncodeToString(sum[:])
}

// Reference returns the reference of an asset and the broker that set it. Both are "" for an asset without a
// reference.
func (r Record) Reference() (broker, reference string, err error) {
	o, err := decodeOrigin(r.ID, r.Origin)
	return o.Broker, o.Reference, err
}

// sums returns hashes that identify the fields of a request.
func (in Input) sums() record.Sums { return record.SumsOf(sha256.New, "", in.Fields) }

// createReferenced does what Create does for an input with a Reference. Before the asset exists, the store binds
// the reference to one id for ever. A request that finds the id without an asset creates the asset under this id
// (docs/recovery.md, "Own references"). If a faulty request leaves a reference without an asset, a later request
// uses the id of that reference.
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
			stored, err = r.store.Get(ctx, id, r.most) // another process has created the asset
		}
		if err != nil && !errors.Is(err, ErrRemoved) {
			return Created{}, Unavailable("read asset "+id, err)
		}
		return r.referenced(ctx, by, in, stored, err != nil)
	}
	return Created{}, Unavailable("claim a reference", ErrVoid)
}

// referencedBirth returns the birth of an asset under a reference. If the request has an Idempotency-Key, the
// tokens are derived from it, so that a repeat with the same key gets them again.
func (in Input) referencedBirth(by identity.Identity, id string, now time.Time) birth {
	b := birth{id: id, now: now, newID: newID}
	sums := in.sums()
	b.origin = origin{Broker: by.Broker, Reference: in.Reference, Fields: sums.Bytes, SameFields: sums.Canonical}
	if in.Seed != nil {
		b.tokens = in.Seed.birth(0, now).tokens
		b.origin.repeatableAs(in.Seed.fingerprint(in), now)
	}
	return b
}

// referenced answers a request that repeats the creation of a stored asset, under the same reference. The answer
// has the tokens only if the repeat has the same Idempotency-Key and comes within a day.
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
	if known := before.fields(); known != (record.Sums{}) && !in.sums().Match(known) {
		const text = "The asset %s has this reference; it was created with other fields."
		return Created{}, fault.New(fault.Conflict, fault.Header, ReferenceHeader, text, stored.ID)
	}
	for _, seed := range append([]Seed{in.Seed}, in.Others...) {
		if seed != nil && seed.fingerprint(in).Match(before.request()) {
			b := in.referencedBirth(by, stored.ID, time.UnixMicro(before.Created))
			b.tokens = seed.birth(0, now).tokens
			return r.repeat(ctx, by, in, b, stored, before.Position)
		}
	}
	a, _ := r.remade(by, in, in.referencedBirth(by, stored.ID, now)) // an error does not matter (see Registry.repeat)
	in.tell(a.Ignored())
	return Created{Record: stored}, nil
}
