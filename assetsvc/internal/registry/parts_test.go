package registry_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// tokens is an auth service that accepts the owner token "token" of the broker "broker" for every asset. While the
// field `down` is true, VerifyToken returns an error.
type tokens struct {
	registry.Tokens
	down bool
}

func (*tokens) IssueTokens(context.Context, authapi.IssueTokensRequest) (authapi.IssueTokensResponse, error) {
	return authapi.IssueTokensResponse{Token: "token", Transfer: "transfer"}, nil
}

func (k *tokens) VerifyToken(_ context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	if k.down {
		return authapi.VerifyTokenResponse{}, fault.New(fault.Unavailable, fault.URL, "auth", "down")
	}
	return authapi.VerifyTokenResponse{Valid: r.TokenHash == authapi.Hash("token") && r.Broker == "broker"}, nil
}

// busy is a store in which another request changes the asset before each of the first calls of Replace.
type busy struct {
	registry.Store
	t     *testing.T
	times int // number of calls of Replace that are still to meet such a change
}

func (s *busy) Replace(ctx context.Context, r registry.Record) (int64, error) {
	if s.times > 0 {
		s.times--
		others := expect.Get(s.Get(ctx, r.ID, registry.AnySize))(s.t)
		others.Owner, others.Former = r.Former, r.Former // Get does not return the owner
		expect.Get(s.Store.Replace(ctx, others))(s.t)
	}
	return s.Store.Replace(ctx, r)
}

var (
	owner     = identity.Identity{Broker: "broker", Role: identity.Broker, Levels: "3"}
	concierge = identity.Identity{Broker: "concierge", Role: identity.Concierge}
	admin     = identity.Identity{Broker: "administrator", Role: identity.Administrator}
)

const validAsset = `{"assetType":"bounce","title":"x","description":"x",
	"items":[{"description":"x","classification":{"id":"06111000-3","description":"x"},"unit":{"code":"x"},"quantity":1,"address":{"countryName":"x"},"registrationDetails":{}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"x"}],
	"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},"address":{"countryName":"x"},"contactPoint":{"name":"x","telephone":"1"}}}`

const validDecision = `{"decisionDate":"2026-11-21","decisionID":"y"}`

func parse(t *testing.T, text string) record.Object {
	t.Helper()
	return expect.Get(record.Parse([]byte(text)))(t).(record.Object)
}

// open returns a registry with one draft, the store and the auth service that it uses, and the id of the draft.
func open(t *testing.T) (r *registry.Registry, store *busy, keys *tokens, id string) {
	t.Helper()
	kept := expect.Get(boltstore.Open(filepath.Join(t.TempDir(), "assets.db"), boltstore.Options{Now: time.Now}))(t)
	t.Cleanup(func() { expect.Try(t, kept.Close()) })
	store, keys = &busy{Store: kept, t: t}, &tokens{}
	r = registry.New(store, keys, plainRules, time.Now)
	created := expect.Get(r.Create(t.Context(), owner, registry.Input{Fields: parse(t, validAsset)}))(t)
	return r, store, keys, created.ID
}

func place(t *testing.T, id, path, partID string) registry.Place {
	t.Helper()
	for _, p := range asset.Parts() {
		if p.Path == path {
			return registry.Place{Asset: id, Part: p, ID: partID}
		}
	}
	t.Fatalf("got no kind of parts at %s, want one", path)
	return registry.Place{}
}

func TestAChangeIsDecidedAgainAfterChangesByOthers(t *testing.T) {
	r, store, _, id := open(t)
	for _, c := range []struct {
		times int
		want  fault.Kind
	}{{0, 0}, {1, 0}, {15, 0}, {16, fault.Conflict}} {
		t.Run(fmt.Sprint(c.times, " changes by others"), func(t *testing.T) {
			store.times = c.times
			at := place(t, id, "decisions", "")
			before, _, err := r.ReadParts(t.Context(), at, asset.Newest)
			expect.OK(t, err)
			added, _, err := r.ChangePart(t.Context(), owner, at, "token", asset.Add,
				registry.Input{Fields: parse(t, validDecision)})
			if c.want != 0 {
				if fault.KindOf(err) != c.want || added != nil {
					t.Errorf("got %v, %v; want kind %v", added, err, c.want)
				}
				return
			}
			after, _, readErr := r.ReadParts(t.Context(), at, asset.Newest)
			if err != nil || readErr != nil || len(after) != len(before)+1 || !record.Equal(after[len(before)], added) {
				t.Errorf("got parts %v, %v after adding %v, %v; want the added part at the end", after, readErr,
					added, err)
			}
		})
	}
}

// Promises: one-process
func TestOnlyOneOfManyAddsARelatedProcess(t *testing.T) {
	r, _, _, id := open(t)
	process := parse(t, `{"type":"lot","relatedProcessID":"`+strings.Repeat("d", 32)+`"}`)
	at := place(t, id, "related_processes", "")
	var wg sync.WaitGroup
	added := make(chan record.Object, 20)
	for range cap(added) {
		wg.Go(func() {
			part, _, err := r.ChangePart(t.Context(), concierge, at, "", asset.Add, registry.Input{Fields: process})
			switch {
			case err == nil:
				added <- part
			case fault.KindOf(err) != fault.Invalid:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	expect.Equal(t, len(added), 1, "processes added")
}

// TestRoles has the keys and tokens that are refused without a reason, or not at all (docs/contract.md, "Roles"). Each
// caller tries to add a decision, and the outcome shows the caller's role.
func TestRoles(t *testing.T) {
	r, _, keys, id := open(t)
	refused := []string{"url/permission"}
	for _, c := range []struct {
		name  string
		by    identity.Identity
		token string
		down  bool
		want  []string // places that the refusal names; nil: no refusal
	}{
		{"the owner", owner, "token", false, nil},
		{"the owner without level 3", identity.Identity{Broker: "broker", Role: identity.Broker, Levels: "1"},
			"token", false, nil},
		{"the administrator with the token", admin, "token", false, refused},
		{"a caller without a key, with the token", identity.Identity{}, "token", false, refused},
		{"the owner while the auth service is down", owner, "token", true, []string{"url/auth"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys.down = c.down
			_, _, err := r.ChangePart(t.Context(), c.by, place(t, id, "decisions", ""), c.token, asset.Add,
				registry.Input{Fields: parse(t, validDecision)})
			expect.NoDiff(t, cmp.Diff(c.want, places(err)), "got error %v; the places differ", err)
		})
	}
}

// TestAccreditation has a case for each set of levels (docs/contract.md,
// "Accreditation").
func TestAccreditation(t *testing.T) {
	r, _, _, _ := open(t)
	const text = "Broker Accreditation level does not permit asset creation"
	genuine, test := parse(t, validAsset), parse(t, validAsset).With("mode", "test")
	for _, c := range []struct {
		name   string
		role   identity.Role
		levels string
		fields record.Object
		want   string // place that the refusal names; "": no refusal
	}{
		{"level 3", identity.Broker, "3", genuine, ""},
		{"level 3 among others", identity.Broker, "1234", genuine, ""},
		{"level 0 includes all levels", identity.Broker, "0", genuine, ""},
		{"level 1", identity.Broker, "1", genuine, "body/accreditation"},
		{"level 1 and bad fields", identity.Broker, "1", genuine.Without("title"), "body/accreditation"},
		{"level 1 and an unknown type", identity.Broker, "1", genuine.With("assetType", "x"), "body/assetType"},
		{"a test key and a real asset", identity.Broker, "3t", genuine, "body/mode"},
		{"a test key of all levels", identity.Broker, "0t", genuine, "body/mode"},
		{"a test key and a test asset", identity.Broker, "3t", test, ""},
		{"a test key and bad fields", identity.Broker, "3t", genuine.Without("title"), "body/title"},
		{"a test key without level 3", identity.Broker, "1t", test, "body/accreditation"},
		{"a test asset with a real key", identity.Broker, "3", test, ""},
		{"the concierge may not create", identity.Concierge, "3", genuine, "url/permission"},
		{"the administrator may not create", identity.Administrator, "0", genuine, "url/permission"},
		{"a service may not create", identity.Service, "0", genuine, "url/permission"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := r.Create(t.Context(), identity.Identity{Broker: "b", Role: c.role, Levels: c.levels},
				registry.Input{Fields: c.fields})
			if got := strings.Join(places(err), " "); got != c.want {
				t.Fatalf("got %v, want a refusal at %q", err, c.want)
			}
			if (c.want == "body/accreditation" || c.want == "body/mode") &&
				(fault.KindOf(err) != fault.Forbidden || !strings.Contains(err.Error(), text)) {
				t.Errorf("got %v, want kind Forbidden and %q", err, text)
			}
		})
	}
}

// places returns the places that a fault names. For an error that is no fault it returns nil.
func places(err error) []string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return nil
	}
	var found []string
	for _, d := range f.Details {
		found = append(found, d.Location+"/"+d.Name)
	}
	return found
}

// moved is an auth service that has a newer token record than the asset. The asset was restored from a backup, which
// was made before the owner of the asset changed.
type moved struct{ tokens }

func (*moved) VerifyToken(_ context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	answer := authapi.VerifyTokenResponse{Valid: r.Broker == "stranger" && r.TokenHash == authapi.Hash("new")}
	if r.Sealed != "newer" {
		answer.Owner, answer.Sealed = "stranger", "newer"
	}
	return answer, nil
}

func TestARestoredAssetIsRepaired(t *testing.T) {
	_, store, _, id := open(t)
	r := registry.New(store, &moved{}, plainRules, time.Now)
	stranger := identity.Identity{Broker: "stranger", Role: identity.Broker, Levels: "1234"}
	if _, err := r.Change(t.Context(), owner, id, "token",
		registry.Input{Fields: parse(t, `{"title":"y"}`)}); err == nil {
		t.Error("a change by the former owner: got nil, want an error")
	}
	expect.Get(r.Change(t.Context(), stranger, id, "new", registry.Input{Fields: parse(t, `{}`)}))(t)
	stored, err := store.Get(t.Context(), id, registry.AnySize)
	if err != nil || stored.Sealed != "newer" || !strings.Contains(string(stored.Body), `"owner":"stranger"`) {
		t.Errorf("stored: got %+v, %v; want the record newer and the owner stranger", stored, err)
	}
	if again, err := r.Change(t.Context(), stranger, id, "new", registry.Input{Fields: parse(t, `{}`)}); err != nil ||
		again.Revision != stored.Revision {
		t.Errorf("a second change: got %+v, %v; want revision %d", again, err, stored.Revision)
	}
}

// failing is a store whose first Replace returns an error, either without writing or after it has written.
type failing struct {
	registry.Store
	before, after bool
}

func (s *failing) Replace(ctx context.Context, r registry.Record) (int64, error) {
	if s.before {
		s.before = false
		return 0, context.DeadlineExceeded
	}
	position, err := s.Store.Replace(ctx, r)
	if s.after {
		s.after = false
		return 0, context.DeadlineExceeded
	}
	return position, err
}

// handing is an auth service that accepts every handover. Its answer depends only on the request, so a repeat
// gets the same answer.
type handing struct{ tokens }

func (*handing) ChangeOwner(_ context.Context, r authapi.ChangeOwnerRequest) (authapi.ChangeOwnerResponse, error) {
	return authapi.ChangeOwnerResponse{Owner: r.Broker, Sealed: "sealed by " + r.TransferID}, nil
}

// claiming is an auth service with one transfer. The transfer is claimed for another asset. The claim ends when
// somebody reads the transfer with the record of that asset.
type claiming struct {
	handing
	another string // id of the asset; "" after the claim has ended
	settled []string
}

func (c *claiming) ReadTransfer(_ context.Context, r authapi.ReadTransferRequest) (authapi.TransferResponse, error) {
	if r.Sealed != "" {
		c.another = ""
		c.settled = append(c.settled, r.Sealed)
	}
	return authapi.TransferResponse{ID: r.ID, Claimed: c.another}, nil
}

func (c *claiming) ChangeOwner(ctx context.Context, r authapi.ChangeOwnerRequest) (authapi.ChangeOwnerResponse, error) {
	if c.another != "" {
		return authapi.ChangeOwnerResponse{}, fault.New(fault.Forbidden, fault.Body, "transfer", "Transfer already used")
	}
	answer, err := c.handing.ChangeOwner(ctx, r)
	if r.Sealed == answer.Sealed {
		c.settled = append(c.settled, r.Sealed)
	}
	return answer, err
}

// TestAHandoverSettlesClaims takes over an asset with a transfer that was claimed for another asset, but not
// used. In the end no claim may be left.
func TestAHandoverSettlesClaims(t *testing.T) {
	first, kept, _, id := open(t)
	another := expect.Get(first.Create(t.Context(), owner, registry.Input{Fields: parse(t, validAsset)}))(t)
	another.Sealed = "theirs"
	expect.Get(kept.Replace(t.Context(), another.Record))(t)
	keys := &claiming{another: another.ID}
	r := registry.New(kept, keys, plainRules, time.Now)
	by := identity.Identity{Broker: "new", Role: identity.Broker, Levels: "3"}
	expect.Get(r.ChangeOwner(t.Context(), by, id, nil, registry.Handover{Transfer: "t", Token: "x"}))(t)
	expect.NoDiff(t, cmp.Diff([]string{"theirs", "sealed by t"}, keys.settled),
		"the records with which the claims end differ")
}

func TestAnInterruptedHandoverCanBeRepeated(t *testing.T) {
	for _, c := range []struct {
		name  string
		store failing
	}{{"a failure before the write", failing{before: true}}, {"a failure after the write", failing{after: true}}} {
		t.Run(c.name, func(t *testing.T) {
			_, kept, _, id := open(t)
			c.store.Store = kept.Store
			r := registry.New(&c.store, &handing{}, plainRules, time.Now)
			by := identity.Identity{Broker: "new", Role: identity.Broker, Levels: "3"}
			if _, err := r.ChangeOwner(t.Context(), by, id, nil,
				registry.Handover{Transfer: "t", Token: "x"}); fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("got %v, want kind Unavailable", err)
			}
			expect.Get(r.ChangeOwner(t.Context(), by, id, nil,
				registry.Handover{Transfer: "t", Token: "x"}))(t)
			stored, err := kept.Get(t.Context(), id, registry.AnySize)
			if err != nil || stored.Revision != 2 || stored.Sealed != "sealed by t" ||
				!strings.Contains(string(stored.Body), `"owner":"new"`) {
				t.Errorf("stored: got %+v, %v; want revision 2 with the new owner", stored, err)
			}
		})
	}
}
