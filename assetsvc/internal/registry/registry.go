// Package registry has the use cases of the asset registry: create, read, change, list, hand over, recover. A use
// case loads an asset, lets the rules decide, and saves the result. The package depends neither on HTTP nor on a
// concrete store.
package registry

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Tokens issues and verifies the tokens of assets. It returns the faults of
// authsvc, and a fault of kind Unavailable if authsvc does not answer.
type Tokens interface {
	IssueTokens(ctx context.Context, r authapi.IssueTokensRequest) (authapi.IssueTokensResponse, error)
	VerifyToken(ctx context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error)
	CreateTransfer(ctx context.Context, broker string) (authapi.CreateTransferResponse, error)
	ReadTransfer(ctx context.Context, r authapi.ReadTransferRequest) (authapi.TransferResponse, error)
	ChangeOwner(ctx context.Context, r authapi.ChangeOwnerRequest) (authapi.ChangeOwnerResponse, error)
	RecoverTokens(ctx context.Context, r authapi.RecoverTokensRequest) (authapi.RecoverTokensResponse, error)
}

// maxAttempts is the largest number of attempts to save a change, while other requests keep changing the same
// asset (docs/contract.md, "Change").
const maxAttempts = 16

// MaxAsset is the largest size of an asset in bytes. Without this limit, clients could add parts without end.
const MaxAsset = 4 << 20

// Registry runs the use cases. It is safe for concurrent use.
type Registry struct {
	store  Store
	tokens Tokens
	rules  asset.Rules
	now    func() time.Time
	turns  *turns  // for changes of assets
	births *turns  // for repeatable creations
	packer *packer // describes changes
	most   int     // maximum number of bytes of an asset that may be read
	public Log     // nil: there is no public log
	events *events // nil: no metrics

	binding binding // binds documents to files
}

// New returns a registry that keeps its assets in store. The parameter `now` must be the clock from which the
// store takes positions. With another clock, a date of an asset might be later than its dateModified.
func New(store Store, tokens Tokens, rules asset.Rules, now func() time.Time) *Registry {
	return &Registry{
		store:  store,
		tokens: tokens,
		rules:  rules,
		now:    now,
		turns:  newTurns(),
		births: newTurns(),
		packer: newPacker(rules.Hidden),
		most:   AnySize,
	}
}

// Upto returns a registry on the same store that reads no asset with more bytes than the given limit (most). For a
// larger asset, its use cases return ErrLarge and change nothing.
func (r *Registry) Upto(most int) *Registry {
	bounded := *r
	bounded.most = most
	return &bounded
}

// Created is an asset with its new tokens. The registry keeps no copy of the tokens.
type Created struct {
	Record
	Token, Transfer string
}

// Input is a client's request to create or change an asset.
type Input struct {
	Fields  record.Object
	Version asset.Version // version of the API that the client uses
	Whole   bool          // for a change: true replaces the asset (PUT), false merges into it (PATCH)
	Guard   Guard         // for a change: reports whether the asset is still as the client has seen it
	Seed    Seed          // for a creation: makes it repeatable; nil: it is not repeatable
	Others  []Seed        // more seeds for the same key, while the registry's secret is rotated

	Reference string // for a creation: the broker's own name for the asset; "": no name

	// Ignored is called with the names of the fields that were ignored (asset.Asset.Ignored), after the request
	// has succeeded. It may be nil.
	Ignored func(names []string)
}

// tell calls the function in.Ignored with the names. It does nothing if there are no names.
func (in Input) tell(names []string) {
	if in.Ignored != nil && len(names) > 0 {
		in.Ignored(names)
	}
}

// Create creates an asset from the fields that a broker sent. The asset is a draft, which the feed does not have
// yet (docs/contract.md, "Create").
func (r *Registry) Create(ctx context.Context, by identity.Identity, in Input) (Created, error) {
	if by.Role != identity.Broker {
		return Created{}, forbidden("only a broker's API key creates assets")
	}
	if in.Reference != "" {
		return r.createReferenced(ctx, by, in)
	}
	if in.Seed != nil {
		return r.createOnce(ctx, by, in)
	}
	return r.create(ctx, by, in, birth{id: newID(), now: r.now(), newID: newID})
}

func (r *Registry) create(ctx context.Context, by identity.Identity, in Input, b birth) (Created, error) {
	a, err := r.rules.Create(in.Fields, asset.Origin{
		ID:       b.id,
		Owner:    by.Broker,
		Barred:   barred(by),
		TestOnly: by.TestOnly(),
		Version:  in.Version,
		Now:      b.now,
		NewID:    b.newID,
	})
	if err != nil {
		return Created{}, err
	}
	number, tokens, err := r.numberAndTokens(ctx, by, a.ID(), b)
	if err != nil {
		return Created{}, err
	}
	a = a.Numbered(number)
	stored := Record{
		ID:       a.ID(),
		Revision: 1,
		Listed:   a.Listed(),
		Test:     a.Test(),
		State:    a.Status(),
		Sealed:   tokens.Sealed,
		Body:     a.Encode(),
		Owner:    a.Owner(),
	}
	if stored.Origin, err = b.origin.encode(); err != nil {
		return Created{}, err
	}
	if err = r.packer.describe(&stored, Author{by.Broker, by.KeyID, asset.Owner}, false, nil, a.Fields()); err != nil {
		return Created{}, err
	}
	stored.Position, err = r.store.Create(ctx, stored)
	if err != nil {
		return Created{}, Unavailable("create asset "+a.ID(), err)
	}
	if stored.Listed {
		if err := r.awaitList(ctx, stored.Position); err != nil {
			return Created{}, err
		}
	}
	r.events.creation(ctx, by.Broker)
	in.tell(a.Ignored())
	return Created{Record: stored, Token: tokens.Token, Transfer: tokens.Transfer}, nil
}

// numberAndTokens gets the assetID from the store and the tokens from authsvc at the same time.
func (r *Registry) numberAndTokens(
	ctx context.Context, by identity.Identity, id string, b birth,
) (assetID string, tokens authapi.IssueTokensResponse, err error) {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		day := b.now.In(r.rules.Zone).Format(time.DateOnly)
		number, err := r.store.NextNumber(ctx, day)
		if err != nil {
			return Unavailable("number asset", err)
		}
		assetID = fmt.Sprintf("UA-AR-DGF-%s-%06d", day, number) // docs/contract.md, "Identifiers"
		return nil
	})
	both.Go(func() (err error) {
		request := authapi.IssueTokensRequest{AssetID: id, Broker: by.Broker, Seed: b.tokens}
		tokens, err = r.tokens.IssueTokens(ctx, request)
		return errs.In(err, "issue tokens of asset %s", id)
	})
	err = both.Wait()
	return assetID, tokens, err
}

// Read returns an asset. If no asset has the id, the error is a fault of kind NotFound. If the asset has more
// bytes than the limit of Upto, the error is ErrLarge.
func (r *Registry) Read(ctx context.Context, id string) (Record, error) {
	stored, err := r.store.Get(ctx, id, r.most)
	return stored, readFault(id, err)
}

// Head returns an asset without its Body. It returns the same errors as Read, except ErrLarge.
func (r *Registry) Head(ctx context.Context, id string) (Record, error) {
	stored, err := r.store.Look(ctx, id, 0, nil)
	return stored, readFault(id, err)
}

// look returns an asset without its Body, and decodes only the selected parts. It returns the same errors as Read.
func (r *Registry) look(ctx context.Context, id string, s asset.Selection) (asset.Asset, Record, error) {
	var a asset.Asset
	var damaged error
	stored, err := r.store.Look(ctx, id, r.most, func(body []byte) error {
		if a, damaged = asset.Select(body, s); damaged != nil {
			damaged = fmt.Errorf("decode asset %s: %w", id, damaged)
		}
		return nil
	})
	return a, stored, cmp.Or(readFault(id, err), damaged)
}

// readFault returns the error of a use case for an error of the store.
func readFault(id string, err error) error {
	switch {
	case err == nil || errors.Is(err, ErrLarge):
		return err
	case errors.Is(err, ErrNotFound):
		return missing()
	}
	return Unavailable("read asset "+id, err)
}

// missing returns the fault of an asset that does not exist.
func missing() error { return fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found") }

// Change merges the fields that a caller sent into an asset; if in.Whole is true, the fields replace the asset
// (docs/contract.md, "Change" and "Replace"). The parameter `token` is the owner token, or "" if the caller sent none.
// If nothing differs, nothing is saved.
func (r *Registry) Change(
	ctx context.Context, by identity.Identity, id, token string, in Input,
) (Record, error) {
	var ignored []string
	apply := func(current asset.Asset, position int64, as asset.Caller) (asset.Asset, error) {
		next, _, err := r.rules.Change(current, asset.Change{
			Fields:  in.Fields,
			Whole:   in.Whole,
			Caller:  as,
			Version: in.Version,
			Dated:   time.UnixMicro(position),
			Now:     r.now(),
			NewID:   newID,
		})
		ignored = next.Ignored()
		return next, err
	}
	changed, err := r.change(ctx, by, id, token, in.Guard, apply)
	if err == nil {
		in.tell(ignored)
	}
	return changed, err
}

func decode(stored Record) (asset.Asset, error) {
	a, err := asset.Decode(stored.Body)
	return a, errs.In(err, "decode asset %s", stored.ID)
}

// List returns one page of the feed. If q.Owner is set, it returns a page of this owner's assets instead.
func (r *Registry) List(ctx context.Context, q Query) (FeedPage, error) {
	page, err := r.store.Page(ctx, q)
	if err != nil {
		return FeedPage{}, Unavailable("list assets", err)
	}
	if q.Bodies == 0 {
		return page, nil
	}
	return r.withFormer(ctx, page)
}

// Own returns one page of the assets of the caller's broker (docs/contract.md, "Own assets"). A test-only key
// sees only assets in test mode.
func (r *Registry) Own(ctx context.Context, by identity.Identity, q Query) (FeedPage, error) {
	if by.IsAnonymous() || by.Broker == "" {
		return FeedPage{}, forbidden("an API key of a broker is needed")
	}
	q.Owner = by.Broker
	if by.TestOnly() {
		q.Mode = Test
	}
	page, err := r.List(ctx, q)
	for i := range page.Entries {
		e := &page.Entries[i]
		o, err := decodeOrigin(e.ID, e.Origin)
		if err != nil {
			return FeedPage{}, err
		}
		if o.Broker == by.Broker {
			e.Reference = o.Reference
		}
	}
	return page, err
}

// Ready returns nil if assets can be read and written.
func (r *Registry) Ready(ctx context.Context) error { return r.store.Ready(ctx) }

// Unavailable returns the fault for a store that did not answer (docs/contract.md, "Errors"). The arguments `doing`
// and `cause` are for the log; clients do not see them.
func Unavailable(doing string, cause error) error {
	const text = "The registry cannot reach its data now; repeat the request."
	f := fault.New(fault.Unavailable, fault.URL, "store", text)
	return fmt.Errorf("%s: %w: %w", doing, f, cause)
}

// newID returns a random UUID4 as 32 hex characters (docs/contract.md,
// "Identifiers").
func newID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}
