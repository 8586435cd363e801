package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// A creation under an Idempotency-Key derives everything random from a Seed (docs/contract.md, "Idempotency"), so
// every process derives the same id. A store accepts an id only once, so two processes cannot both create the
// asset. The tokens are not stored, because the same key derives them again.

const (
	repeatable = 24 * time.Hour // a creation is repeated up to this age; later, its key creates another asset
	maxUses    = 100            // maximum number of creations under one key
)

// Seed is a secret that the gateway derives from an API key and an Idempotency-Key. Nobody can derive it without
// both.
type Seed []byte

// derive returns 32 bytes for a purpose and a number. They reveal nothing about the seed.
func (s Seed) derive(purpose string, number int) []byte {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(purpose + " " + strconv.Itoa(number)))
	return mac.Sum(nil)
}

// birth has everything that a creation needs and the client does not send.
type birth struct {
	id     string
	now    time.Time
	newID  func() string // makes the ids of parts
	tokens string        // seed of the tokens; "": random tokens
	origin origin        // zero: the creation is not repeatable
}

// birth returns the birth for one of the creations under the seed. The argument `use` is the number of that
// creation, counted from 0.
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

// id returns a UUID4, derived from the seed, as 32 hex characters.
func (s Seed) id(number int) string {
	var id uuid.UUID
	copy(id[:], s.derive("id", number))
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return hex.EncodeToString(id[:])
}

// fingerprint identifies a request under a seed. It depends on the fields that were sent. It also depends on the
// fields that the request's version of the API hides, because answers differ in these fields. Hidden fields of
// documents do not count, because a new asset has no documents that a client sent. Records keep fingerprints for a
// day, so a new release must also make the fingerprints of the old release.
func (s Seed) fingerprint(in Input) record.Sums {
	hidden := slices.DeleteFunc(asset.NewView(in.Version).Hidden(), func(path string) bool {
		return strings.HasPrefix(path, "documents.")
	})
	keyed := func() hash.Hash { return hmac.New(sha256.New, s.derive("fingerprint", 0)) }
	return record.SumsOf(keyed, strings.Join(hidden, ",")+"\x00", in.Fields)
}

// origin has the facts that are needed to answer a repeat of a creation. It contains no secret.
type origin struct {
	Request  string `json:"request,omitempty"`  // fingerprint of the bytes
	Same     string `json:"same,omitempty"`     // canonical fingerprint; "": a former program wrote this last
	Created  int64  `json:"created,omitempty"`  // µs since the Unix epoch; 0: not repeatable
	Position int64  `json:"position,omitempty"` // position of revision 1; 0: the asset is still at revision 1

	// The fields below stay for ever. They are empty for an asset without a reference.
	Broker     string `json:"broker,omitempty"` // the broker that set the reference
	Reference  string `json:"reference,omitempty"`
	Fields     string `json:"fields,omitempty"`     // sum of the bytes of the creation's fields; "": unknown
	SameFields string `json:"sameFields,omitempty"` // canonical sum of them; "": unknown
}

// request returns the fingerprint of the creation.
func (o origin) request() record.Sums { return record.Sums{Canonical: o.Same, Bytes: o.Request} }

// fields returns the sums of the fields of a creation under a reference.
func (o origin) fields() record.Sums { return record.Sums{Canonical: o.SameFields, Bytes: o.Fields} }

// repeatableAs makes the creation repeatable for a day.
func (o *origin) repeatableAs(request record.Sums, now time.Time) {
	o.Request, o.Same, o.Created = request.Bytes, request.Canonical, now.UnixMicro()
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

// origin decodes the origin of an asset. In the result, Created is 0 if the creation was never repeatable, or is too
// old to be repeated. A creation that a wrong clock has dated a day or more into the future counts as too old, too.
func (r Record) origin(now time.Time) (origin, error) {
	o, err := decodeOrigin(r.ID, r.Origin)
	if now.Sub(time.UnixMicro(o.Created)).Abs() >= repeatable {
		o.Request, o.Same, o.Created, o.Position = "", "", 0, 0
	}
	return o, err
}

func decodeOrigin(id, text string) (o origin, err error) {
	if text == "" {
		return o, nil
	}
	err = json.Unmarshal([]byte(text), &o)
	return o, errs.In(err, "decode origin of asset %s", id)
}

// originAfter returns the encoded origin for the next revision of an asset.
func (r Record) originAfter(now time.Time) (string, error) {
	o, err := r.origin(now)
	if err != nil {
		return "", err
	}
	if o.Created != 0 && o.Position == 0 {
		o.Position = r.Position
	}
	return o.encode()
}

// createOnce does what Create does for an input with a Seed.
func (r *Registry) createOnce(ctx context.Context, by identity.Identity, in Input) (Created, error) {
	now := r.now()
	end, err := r.takeBirth(ctx, in, now) // a repeat that waits here does not use up an asset number
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
		b.origin.repeatableAs(in.Seed.fingerprint(in), now)
		stored, err := r.store.Get(ctx, b.id, r.most)
		if errors.Is(err, ErrNotFound) && !errors.Is(err, ErrRemoved) {
			var created Created
			created, err = r.create(ctx, by, in, b)
			if errors.Is(err, ErrVoid) {
				continue
			}
			if !errors.Is(err, ErrExists) {
				return created, err
			}
			stored, err = r.store.Get(ctx, b.id, r.most) // another process has created the asset
		}
		if errors.Is(err, ErrRemoved) {
			if err := r.removedUnder(stored, in, in.Seed); err != nil {
				return Created{}, err
			}
			continue
		}
		if err != nil {
			return Created{}, Unavailable("read asset "+b.id, err)
		}
		created, found, err := r.again(ctx, by, in, in.Seed, b, stored)
		if found || err != nil {
			return created, err
		}
	}
	const text = "This key was used %d times; make a new one."
	return Created{}, fault.New(fault.Invalid, fault.Header, "Idempotency-Key", text, maxUses)
}

// takeBirth waits for the turn of a creation. Creations with the same seeds wait for each other, even if their
// inputs have the seeds in different orders.
func (r *Registry) takeBirth(ctx context.Context, in Input, now time.Time) (end func(), err error) {
	first := in.Seed.birth(0, now).id
	for _, seed := range in.Others {
		first = min(first, seed.birth(0, now).id)
	}
	return r.births.of(first).take(ctx)
}

// maxGaps is the number of missing ids in a row after which createdUnder stops. An id is missing if no creation
// has used it, or if it is void after a failed creation.
const maxGaps = 3

// createdUnder answers a repeat of a creation that was made under another seed. If no creation was made under that
// seed, the result `found` is false.
func (r *Registry) createdUnder(
	ctx context.Context, by identity.Identity, in Input, seed Seed, now time.Time,
) (created Created, found bool, err error) {
	gaps := 0
	for use := 0; use < maxUses && gaps < maxGaps; use++ {
		b := seed.birth(use, now)
		stored, err := r.store.Get(ctx, b.id, r.most)
		if errors.Is(err, ErrRemoved) {
			if err := r.removedUnder(stored, in, seed); err != nil {
				return Created{}, false, err
			}
			gaps = 0
			continue
		}
		if errors.Is(err, ErrNotFound) {
			gaps++
			continue
		}
		if err != nil {
			return Created{}, false, Unavailable("read asset "+b.id, err)
		}
		if created, found, err = r.again(ctx, by, in, seed, b, stored); found || err != nil {
			return created, found, err
		}
		gaps = 0
	}
	return Created{}, false, nil
}

// The method `again` answers a request whose seed gives the id of a stored asset. The result is the answer to the
// creation of that asset, or a fault if the creation was another request. If the creation cannot be repeated any more,
// found is false.
func (r *Registry) again(
	ctx context.Context, by identity.Identity, in Input, seed Seed, b birth, stored Record,
) (created Created, found bool, err error) {
	before, err := stored.origin(b.now)
	switch {
	case err != nil:
		return Created{}, false, err
	case before.Created == 0:
		return Created{}, false, nil
	case !seed.fingerprint(in).Match(before.request()):
		return Created{}, true, anotherRequest()
	}
	b.now = time.UnixMicro(before.Created)
	created, err = r.repeat(ctx, by, in, b, stored, before.Position)
	return created, true, err
}

func anotherRequest() error {
	const text = "Another request was made with this key within 24 hours."
	return fault.New(fault.Invalid, fault.Header, "Idempotency-Key", text)
}

// repeat returns the same result as the creation of the stored asset did. The argument `first` is the position of
// revision 1, or 0 if the asset is still at revision 1.
func (r *Registry) repeat(
	ctx context.Context, by identity.Identity, in Input, b birth, stored Record, first int64,
) (Created, error) {
	if first != 0 {
		a, err := r.asCreated(ctx, by, in, b, stored, first)
		if err != nil {
			return Created{}, fmt.Errorf("repeat creation of asset %s: %w", b.id, err)
		}
		stored.Body, stored.Position = a.Encode(), first
	}
	request := authapi.IssueTokensRequest{AssetID: b.id, Broker: by.Broker, Seed: b.tokens}
	tokens, err := r.tokens.IssueTokens(ctx, request)
	if err != nil {
		return Created{}, fmt.Errorf("issue tokens of asset %s: %w", b.id, err)
	}
	// An error of remade does not matter: a rule may have become stricter since, but the asset exists.
	a, _ := r.remade(by, in, b)
	in.tell(a.Ignored())
	return Created{Record: stored, Token: tokens.Token, Transfer: tokens.Transfer}, nil
}

// asCreated returns an asset as it was created. It reads the asset from the record, because the settings may have
// changed since the creation. If the record was erased, it makes the asset again from the request.
func (r *Registry) asCreated(
	ctx context.Context, by identity.Identity, in Input, b birth, stored Record, first int64,
) (asset.Asset, error) {
	past, err := r.Past(ctx, b.id, first)
	if err == nil {
		return decode(Record{ID: b.id, Body: record.Append(nil, past)})
	}
	if !errors.Is(err, ErrNoCopy) {
		return asset.Asset{}, err
	}
	now, err := decode(stored)
	if err != nil {
		return asset.Asset{}, err
	}
	a, err := r.remade(by, in, b)
	return a.Numbered(now.AssetID()), err
}

// remade applies the rules of a creation to the request again, and returns the resulting asset.
func (r *Registry) remade(by identity.Identity, in Input, b birth) (asset.Asset, error) {
	return r.rules.Create(in.Fields, asset.Origin{
		ID: b.id, Owner: by.Broker, Version: in.Version, Now: b.now, NewID: b.newID,
	})
}
