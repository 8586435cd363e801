package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	goclient "asset-registry.example/client"
	"asset-registry/deploy/test/rig/processes"
)

// TestGoClient takes an asset through its life with the Go client: create, publish, change with an ETag, parts,
// hand over, revisions. Then it follows the feed across a restart of the registry. The client must also go on after
// answers with 429 and 503.
func TestGoClient(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	first := standalone(t, addr, dir, &processes.Output{})
	edge := &losing{}
	broker, broker3 := newGoClient(t, addr, "broker", edge), newGoClient(t, addr, "broker3", nil)
	created := life(t, broker)
	takeOver(t, broker, broker3, created)
	uncertainWrites(t, broker, edge)

	seen := make(chan string, 100)
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { follow(t, ctx, newGoClient(t, addr, "", nil), seen) })
	awaitID(t, seen, created.Asset.ID)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	build(t)
	second, err := processes.Start(t.Context(), addr, &processes.Output{}, filepath.Join(bin, "registry"),
		"serve", "--sandbox", "--addr", addr, "--data", dir, "--limit-key-write", "2")
	if err != nil {
		t.Fatal(err)
	}
	awaitID(t, seen, refusals(t, broker, edge))
	stop()
	following.Wait()
	if err := second.Stop(); err != nil {
		t.Error(err)
	}
}

func newGoClient(t *testing.T, addr, key string, edge *losing) *goclient.Client {
	t.Helper()
	config := goclient.Config{URL: "http://" + addr, Key: goclient.Secret(key)}
	if edge != nil {
		config.Transport = edge
	}
	c, err := goclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// goAsset returns the same asset as validAsset, as a struct of the Go client.
func goAsset() goclient.Asset {
	return goclient.Asset{
		AssetType: "bounce", Title: "Нежитлове приміщення", Description: "Перший поверх",
		Items: []goclient.Item{{
			Description:         "Приміщення",
			Classification:      goclient.Classification{Scheme: "CAV-PS", ID: "06111000-3", Description: "Земля"},
			Unit:                goclient.Unit{Code: "MTK"},
			Quantity:            "12345678901234567890.0001",
			Address:             goclient.Address{CountryName: "Україна"},
			Location:            &goclient.Location{Latitude: goclient.Number("50.4500"), Longitude: goclient.Text("30,5")},
			RegistrationDetails: goclient.RegistrationDetails{Status: "unknown"},
		}},
		Decisions: []goclient.Decision{{DecisionDate: "2026-11-20T12:00:00+02:00", DecisionID: "1637-10"}},
		AssetCustodian: goclient.Organisation{
			Name:         "Фонд",
			Identifier:   goclient.Identifier{Scheme: "UA-EDR", ID: goclient.Number("32945")},
			Address:      goclient.Address{CountryName: "Україна"},
			ContactPoint: goclient.Contact{Name: "Реєстратор", Telephone: "+380440000000"},
		},
	}
}

// life creates, publishes and changes an asset and its parts.
func life(t *testing.T, c *goclient.Client) goclient.Created {
	ctx := t.Context()
	created, err := c.Create(ctx, goAsset())
	mustBe(t, err)
	w := goclient.Write{Token: created.Access.Token, IfMatch: created.Asset.Tag}
	published, err := c.Publish(ctx, created.Asset.ID, w)
	mustBe(t, err)
	if published.Status != goclient.Pending || published.RectificationPeriod == nil || published.Tag == created.Asset.Tag {
		t.Errorf("got %+v, want a pending asset with a new tag", published)
	}
	if item := published.Items[0]; item.Quantity != "12345678901234567890.0001" ||
		item.Location.Latitude.String() != "50.4500" || !item.Location.Latitude.IsNumber() {
		t.Errorf("got the item %+v, want every digit", item)
	}
	_, err = c.Patch(ctx, created.Asset.ID, goclient.Fields{"title": "пізно"}, w)
	if !goclient.IsChanged(err) {
		t.Errorf("a change with the old tag: got %v, want 412", err)
	}
	w.IfMatch = published.Tag
	fields := goclient.Fields{"title_en": "Warehouse", "description": "Два входи"}
	changed, err := c.Patch(ctx, created.Asset.ID, fields, w)
	mustBe(t, err)
	changed.TitleEn, w.IfMatch = "", changed.Tag
	replaced, err := c.Replace(ctx, created.Asset.ID, changed, w)
	mustBe(t, err)
	if replaced.TitleEn != "" || replaced.Description != "Два входи" || len(replaced.Unknown) > 0 {
		t.Errorf("got %+v, want no title_en, the new description and no unknown field", replaced)
	}
	parts(t, c, replaced, created.Access.Token)
	return created
}

// parts adds and changes an item and a document of an asset.
func parts(t *testing.T, c *goclient.Client, asset goclient.Asset, token goclient.Secret) {
	ctx, w := t.Context(), goclient.Write{Token: token}
	second := asset.Items[0]
	second.ID = ""
	item, err := c.Items(asset.ID).Add(ctx, second, w)
	mustBe(t, err)
	fields := goclient.Fields{"quantity": goclient.Decimal("0.5"), "location": nil}
	item, err = c.Items(asset.ID).Patch(ctx, item.ID, fields, w)
	mustBe(t, err)
	if item.Quantity != "0.5" || item.Location != nil || item.Tag == "" {
		t.Errorf("got the item %+v, want another quantity, no location and a tag", item)
	}
	document, err := c.Documents(asset.ID).Add(ctx, goclient.Document{DocumentType: "notice", Title: "Ні",
		URL: "https://files.example/key1"}, w)
	mustBe(t, err)
	_, err = c.Documents(asset.ID).AddVersion(ctx, document.ID, goclient.Document{DocumentType: "notice", Title: "Так",
		URL: "https://files.example/key2"}, w)
	mustBe(t, err)
	document, err = c.Documents(asset.ID).Get(ctx, document.ID)
	mustBe(t, err)
	if document.Title != "Так" || len(document.PreviousVersions) != 1 {
		t.Errorf("got the document %+v, want the second version and the first one in it", document)
	}
	address, err := c.Documents(asset.ID).Download(ctx, document.ID, "key1")
	if err != nil || address != "https://files.example/key1" {
		t.Errorf("got the address %q, %v, want the first version's", address, err)
	}
	versions, err := c.Documents(asset.ID).Versions(ctx)
	if err != nil || len(versions) != 3 {
		t.Errorf("got %d versions, %v, want the registry's document and two versions", len(versions), err)
	}
	me, err := c.Me(ctx)
	if err != nil || me.Broker != "broker" || me.Role != "broker" {
		t.Errorf("got %+v, %v, want the broker", me, err)
	}
	mustBe(t, c.Health(ctx))
}

// takeOver gives the asset to another broker. The revisions of the asset must show who changed it.
func takeOver(t *testing.T, from, to *goclient.Client, created goclient.Created) {
	ctx, id := t.Context(), created.Asset.ID
	made, err := to.CreateTransfer(ctx)
	mustBe(t, err)
	_, err = to.TakeOver(ctx, id, made.Transfer.ID, "wrong-token")
	if !goclient.IsForbidden(err) || strings.Contains(err.Error(), "wrong-token") {
		t.Errorf("a wrong token: got %v, want 403 without the token", err)
	}
	asset, err := to.TakeOver(ctx, id, made.Transfer.ID, created.Access.Transfer)
	mustBe(t, err)
	used, err := to.Transfer(ctx, made.Transfer.ID)
	if err != nil || used.UsedFor != "/assets/"+id || asset.Owner != "broker3" {
		t.Errorf("got the owner %s and %+v, %v, want broker3 and a used transfer", asset.Owner, used, err)
	}
	_, err = from.Patch(ctx, id, goclient.Fields{"title": "моє"}, goclient.Write{Token: created.Access.Token})
	if !goclient.IsForbidden(err) {
		t.Errorf("the old owner: got %v, want 403", err)
	}
	var revisions []goclient.Revision
	for revision, err := range to.Revisions(ctx, id, made.Access.Token) {
		mustBe(t, err)
		revisions = append(revisions, revision)
	}
	newest := revisions[0]
	if newest.Author.Broker != "broker3" || newest.Date != asset.DateModified || int(newest.Revision) != len(revisions) {
		t.Errorf("got the newest revision %+v of %d, want the change of owner", newest, len(revisions))
	}
}

// uncertainWrites loses the answers to two writes that the registry has carried out. The client must find the
// created asset, and must report that it cannot be sure of the change.
func uncertainWrites(t *testing.T, c *goclient.Client, edge *losing) {
	ctx := t.Context()
	edge.lose(1)
	created, err := c.Create(ctx, goAsset())
	mustBe(t, err)
	if lost := edge.lost(); !strings.Contains(lost, created.Asset.ID) {
		t.Errorf("got the asset %s after a lost answer, want the one of %s", created.Asset.ID, lost)
	}
	edge.lose(1)
	w := goclient.Write{Token: created.Access.Token, IfMatch: created.Asset.Tag}
	_, err = c.Patch(ctx, created.Asset.ID, goclient.Fields{"title": "двічі"}, w)
	if refusal, ok := errors.AsType[*goclient.Error](err); !ok || refusal.Status != 412 || !refusal.Uncertain {
		t.Errorf("got %v, want 412 that is uncertain", err)
	}
}

// refusals publishes assets faster than the registry's limit allows, so that the client must wait. It returns the
// id of the last asset.
func refusals(t *testing.T, c *goclient.Client, edge *losing) (id string) {
	for range 3 {
		created, err := c.Create(t.Context(), goAsset())
		mustBe(t, err)
		_, err = c.Publish(t.Context(), created.Asset.ID, goclient.Write{Token: created.Access.Token})
		mustBe(t, err)
		id = created.Asset.ID
	}
	if edge.refused() == 0 {
		t.Error("got no 429, want one that the client waited for")
	}
	return id
}

// follow sends the id of every entry of the feed to a channel, until ctx ends.
func follow(t *testing.T, ctx context.Context, c *goclient.Client, seen chan<- string) {
	for page, err := range c.Follow(ctx, goclient.Feed{}, 10*time.Millisecond) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Errorf("follow: %v", err)
		}
		for _, entry := range page.Assets {
			seen <- entry.ID
		}
	}
}

func awaitID(t *testing.T, seen <-chan string, id string) {
	t.Helper()
	for timeout := time.After(time.Minute); ; {
		select {
		case got := <-seen:
			if got == id {
				return
			}
		case <-timeout:
			t.Fatalf("got no entry of %s in the feed, want one", id)
		}
	}
}

func mustBe(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// losing is a transport that loses answers: it replaces the registry's answer by a 503. It counts answers of status
// 429.
type losing struct {
	mu      sync.Mutex
	left    int    // how many of the next answers to lose
	body    string // body of the last answer that was lost
	tooMany int
}

func (l *losing) lose(answers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.body = answers, ""
}

func (l *losing) lost() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.body
}

func (l *losing) refused() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tooMany
}

// RoundTrip implements http.RoundTripper.
func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusTooManyRequests:
		l.tooMany++
	case l.left > 0:
		l.left--
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		l.body = string(text)
		resp.StatusCode, resp.Header = http.StatusServiceUnavailable, http.Header{"Retry-After": {"1"}}
		resp.Body = io.NopCloser(strings.NewReader("{}"))
	}
	return resp, nil
}
