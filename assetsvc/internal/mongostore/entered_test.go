package mongostore

import (
	"context"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// TestGetTellsWhereAnAssetEnteredItsList publishes a draft while a batch is open, and then changes it again. Get
// must return the position of the publication until the horizon has passed that position.
func TestGetTellsWhereAnAssetEnteredItsList(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "entered"), Options{Lease: time.Hour})
	draft := registry.Record{ID: storetest.NewID(), Revision: 1, Body: body}
	var err error
	draft.Position, err = s.Create(t.Context(), draft)
	expect.OK(t, err)
	check := func(when string, want int64) {
		t.Helper()
		for _, most := range []int{registry.AnySize, 10_000} {
			r, err := s.Get(t.Context(), draft.ID, most)
			if err != nil || r.Entered != want {
				t.Errorf("%s: got %d, %v; want %d", when, r.Entered, err, want)
			}
		}
	}
	check("a draft", 0)
	release := hold(t, s)
	published := mustChange(t, s, draft.ID, func(r *registry.Record) { r.Listed = true })
	check("published", published.Position)
	mustChange(t, s, draft.ID, func(r *registry.Record) { r.Body = append(r.Body, ' ') })
	check("changed since", published.Position)
	test := mustChange(t, s, draft.ID, func(r *registry.Record) { r.Test = true })
	check("in another list", test.Position)
	release()
	if _, err := s.Page(t.Context(), registry.HorizonQuery()); err != nil { // learns the new horizon
		t.Fatal(err)
	}
	check("once the horizon has passed", 0)
}

// impatient is a store that calls the function `leave` before it reads a page of the list. A test uses this to let
// the client give up at that moment.
type impatient struct {
	*Store
	leave func()
}

func (s *impatient) Page(ctx context.Context, q registry.Query) (registry.FeedPage, error) {
	s.leave()
	return s.Store.Page(ctx, q)
}

// issuer is an auth service that can issue tokens, and accepts every token.
type issuer struct{ registry.Tokens }

func (issuer) IssueTokens(context.Context, authapi.IssueTokensRequest) (authapi.IssueTokensResponse, error) {
	return authapi.IssueTokensResponse{Token: "token", Transfer: "transfer"}, nil
}

func (issuer) VerifyToken(context.Context, authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	return authapi.VerifyTokenResponse{Valid: true}, nil
}

const validAsset = `{"assetType":"bounce","title":"x","description":"x",
	"items":[{"description":"x","classification":{"id":"06111000-3","description":"x"},"unit":{"code":"x"},
		"quantity":1,"address":{"countryName":"x"},"registrationDetails":{}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"x"}],
	"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},"address":{"countryName":"x"},
		"contactPoint":{"name":"x","telephone":"1"}}}`

var (
	anyBroker = identity.Identity{Broker: "broker", Role: identity.Broker, Levels: "3"}
	anyAdmin  = identity.Identity{Broker: "administrator", Role: identity.Administrator}
)

// input returns the input of a creation or change with the given JSON.
func input(t *testing.T, text string) registry.Input {
	t.Helper()
	return registry.Input{Fields: expect.Get(record.Parse([]byte(text)))(t).(record.Object)}
}

// TestAWalkHasAPublicationThatWasRepeated publishes an asset while the batch of another process is open. The
// answer is lost, so the client sends the publication again. Once the registry has acknowledged the second
// request, a walk over the list must find the asset.
// Promises: feed-whole
func TestAWalkHasAPublicationThatWasRepeated(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "repeated"), Options{Lease: time.Hour})
	clients := &impatient{Store: s}
	r := registry.New(clients, issuer{}, asset.Rules{Types: []string{"bounce"}, Zone: time.UTC}, time.Now)
	created := expect.Get(r.Create(t.Context(), anyBroker, input(t, validAsset)))(t)
	release := hold(t, s)
	publish := func() error {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		clients.leave = leave
		_, err := r.Change(ctx, anyAdmin, created.ID, "", input(t, `{"status":"pending"}`))
		return err
	}
	for _, when := range []string{"the publication", "its repeat"} {
		err, all := publish(), walk(t, s, registry.Query{Limit: 10})
		if fault.KindOf(err) != fault.Unavailable || len(all) != 0 {
			t.Errorf("%s: got %v, and then %d assets in a walk, want a fault of kind Unavailable and none", when, err, len(all))
		}
	}
	release()
	walk(t, s, registry.Query{Limit: 10}) // learns the new horizon
	if err, all := publish(), walk(t, s, registry.Query{Limit: 10}); err != nil || len(all) != 1 {
		t.Errorf("once the batch is closed: got %v, and then %d assets in a walk, want nil and 1", err, len(all))
	}
}
