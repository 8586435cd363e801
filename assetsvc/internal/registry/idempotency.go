package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// A creation under an Idempotency-Key takes all that is random in it from a
// Seed. So its id is the same in every process, and that a store takes an id
// once is the lock between them; and its tokens, which nobody stores, can be
// told again to whoever sends the same key, and to nobody else.

const (
	repeatable = 24 * time.Hour // a creation can be repeated for so long; after that its key stands for a new one
	maxUses    = 100            // of one key, each a creation of its own
)

// Seed is made of an API key and an Idempotency-Key, by the gateway: a secret
// that nobody makes again who does not have both.
type Seed []byte

// derive returns 32 bytes for a purpose, which tell nothing of the seed.
func (s Seed) derive(purpose string, number int) []byte {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(purpose + " " + strconv.Itoa(number)))
	return mac.Sum(nil)
}

// birth is what a creation is made of besides what was sent.
type birth struct {
	id     string
	now    time.Time
	newID  func() string // of parts
	tokens string        // seed of the tokens; "" for random ones
	origin origin        // zero: it cannot be repeated
}

// birth returns what a creation under the seed is made of, at its use'th use.
func (s Seed) birth(use int, now time.Time) birth {
	own, part := Seed(s.derive("creation", use)), 0
	return birth{
		id:  own.id(0),
		now: now,
		newID: func() string {
			part++
			return own.id(part)
		},
		tokens: hex.EncodeToString(own.derive("tokens", 0)),
	}
}

// id returns a UUID4 as 32 hex characters.
func (s Seed) id(number int) string {
	var id uuid.UUID
	copy(id[:], s.derive("id", number))
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return hex.EncodeToString(id[:])
}

// fingerprint tells requests under one seed apart: by what was sent, and by the
// fields that the version hides, since the answers differ. Records keep
// fingerprints for a day, so a new release must make the same ones.
func (s Seed) fingerprint(in Input) string {
	mac := hmac.New(sha256.New, s.derive("fingerprint", 0))
	mac.Write([]byte(strings.Join(asset.NewView(in.Version).Hidden(), ",")))
	mac.Write(record.Append([]byte{0}, in.Fields))
	return hex.EncodeToString(mac.Sum(nil))
}

// origin is what a repeat of a creation is answered from. It holds no secret.
type origin struct {
	Request  string `json:"request"`            // its fingerprint
	Created  int64  `json:"created"`            // µs since the Unix epoch
	Position int64  `json:"position,omitempty"` // the first one, once there is another
}

func (o origin) encode() (string, error) {
	if o == (origin{}) {
		return "", nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encode origin: %w", err)
	}
	return string(text), nil
}

// origin returns the zero origin for an asset whose creation cannot be repeated.
func (r Record) origin(now time.Time) (origin, error) {
	var o origin
	if r.Origin == "" {
		return o, nil
	}
	if err := json.Unmarshal([]byte(r.Origin), &o); err != nil {
		return o, fmt.Errorf("decode origin of asset %s: %w", r.ID, err)
	}
	if now.Sub(time.UnixMicro(o.Created)) >= repeatable {
		return origin{}, nil
	}
	return o, nil
}

// originAfter is what the origin is after a change of stored.
func (r Record) originAfter(now time.Time) (string, error) {
	o, err := r.origin(now)
	if err != nil {
		return "", err
	}
	if o != (origin{}) && o.Position == 0 {
		o.Position = r.Position
	}
	return o.encode()
}

// createOnce is Create under a seed.
func (r *Registry) createOnce(ctx context.Context, by identity.Identity, in Input) (Created, error) {
	now := r.now()
	end, err := r.takeBirth(ctx, in, now) // who repeats at once takes no number
	if err != nil {
		return Created{}, fmt.Errorf("wait to create: %w", err)
	}
	defer end()
	for _, seed := range in.Others {
		created, found, err := r.createdUnder(ctx, by, in, seed, now)
		if found || err != nil {
			return created, err
		}
	}
	for use := range maxUses {
		b := in.Seed.birth(use, now)
		b.origin = origin{Request: in.Seed.fingerprint(in), Created: now.UnixMicro()}
		stored, err := r.store.Get(ctx, b.id, r.most)
		if errors.Is(err, ErrNotFound) {
			var created Created
			created, err = r.create(ctx, by, in, b)
			if errors.Is(err, ErrVoid) {
				continue
			}
			if !errors.Is(err, ErrExists) {
				return created, err
			}
			stored, err = r.store.Get(ctx, b.id, r.most) // another process was faster
		}
		if err != nil {
			return Created{}, unavailable("read asset "+b.id, err)
		}
		created, found, err := r.again(ctx, by, in, in.Seed, b, stored)
		if found || err != nil {
			return created, err
		}
	}
	return Created{}, fault.New(fault.Invalid, fault.Header, "Idempotency-Key", "This key was used %d times; make a new one.", maxUses)
}

// takeBirth waits for the turn of a creation: the same one whichever of its seeds
// comes first.
func (r *Registry) takeBirth(ctx context.Context, in Input, now time.Time) (end func(), err error) {
	first := in.Seed.birth(0, now).id
	for _, seed := range in.Others {
		first = min(first, seed.birth(0, now).id)
	}
	return r.births.of(first).take(ctx)
}

// maxGaps is how many ids in a row may have become void, for creations that
// failed, before those that follow are taken for unused too.
const maxGaps = 3

// createdUnder answers a creation that was made under another seed, and tells
// whether it was.
func (r *Registry) createdUnder(ctx context.Context, by identity.Identity, in Input, seed Seed, now time.Time) (created Created, found bool, err error) {
	gaps := 0
	for use := 0; use < maxUses && gaps < maxGaps; use++ {
		b := seed.birth(use, now)
		stored, err := r.store.Get(ctx, b.id, r.most)
		if errors.Is(err, ErrNotFound) {
			gaps++
			continue
		}
		if err != nil {
			return Created{}, false, unavailable("read asset "+b.id, err)
		}
		if created, found, err = r.again(ctx, by, in, seed, b, stored); found || err != nil {
			return created, found, err
		}
		gaps = 0
	}
	return Created{}, false, nil
}

// again answers a creation under a seed that made stored before. Found is false
// if that was too long ago.
func (r *Registry) again(ctx context.Context, by identity.Identity, in Input, seed Seed, b birth, stored Record) (created Created, found bool, err error) {
	before, err := stored.origin(b.now)
	switch {
	case err != nil:
		return Created{}, false, err
	case before == (origin{}):
		return Created{}, false, nil
	case before.Request != seed.fingerprint(in):
		return Created{}, true, fault.New(fault.Invalid, fault.Header, "Idempotency-Key", "Another request was made with this key within 24 hours.")
	}
	b.now = time.UnixMicro(before.Created)
	created, err = r.repeat(ctx, by, in, b, stored, before.Position)
	return created, true, err
}

// repeat returns what was returned when stored was created. First is the
// position that it had, 0 if that is the one it has.
func (r *Registry) repeat(ctx context.Context, by identity.Identity, in Input, b birth, stored Record, first int64) (Created, error) {
	if first != 0 {
		now, err := decode(stored)
		if err != nil {
			return Created{}, err
		}
		a, err := r.rules.Create(in.Fields, asset.Origin{
			ID: b.id, Owner: by.Broker, Version: in.Version, Now: b.now, NewID: b.newID,
		})
		if err != nil {
			return Created{}, fmt.Errorf("make asset %s again: %w", b.id, err)
		}
		stored.Body, stored.Position = a.Numbered(now.AssetID()).Encode(), first
	}
	tokens, err := r.tokens.IssueTokens(ctx, authapi.IssueTokensRequest{AssetID: b.id, Broker: by.Broker, Seed: b.tokens})
	if err != nil {
		return Created{}, fmt.Errorf("issue tokens of asset %s: %w", b.id, err)
	}
	return Created{Record: stored, Token: tokens.Token, Transfer: tokens.Transfer}, nil
}
