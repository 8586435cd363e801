package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry.example/client"

	"asset-registry/shared/testing/expect"
)

func TestGoClientPassesTheScenario(t *testing.T) {
	s := newStage(t, 0)
	g := &goScenario{t: t, stage: s}
	g.broker, g.broker3, g.reader = g.client("broker"), g.client("broker3"), g.client("")
	id, owner := g.life()
	g.backToWork()
	g.webhooks()
	g.faults(id, owner)
	position := g.follow()
	g.report("start over", g.startOver(client.Position{Offset: "no offset"}))
	g.otherData(position, id, owner)
	s.check(append(wanted(), otherData))
}

// goScenario runs the scenario with the Go client.
type goScenario struct {
	t                       *testing.T
	stage                   *stage
	broker, broker3, reader *client.Client

	mu       sync.Mutex
	refusals []int // status of each failed try since the last call of `refused`; 0 if there was no whole answer
}

// client returns a client that records its failed tries in g.refusals.
func (g *goScenario) client(key string) *client.Client {
	c, err := client.New(client.Config{
		URL: g.stage.api.URL, Key: client.Secret(key), Transport: g, Retry: client.Retry{Tries: 20},
	})
	g.must(err)
	return c
}

func (g *goScenario) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		g.failed(0)
		return nil, err
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		g.failed(0)
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		g.failed(resp.StatusCode)
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

func (g *goScenario) failed(status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusals = append(g.refusals, status)
}

// refused returns the failed tries since the last call.
func (g *goScenario) refused() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	found := g.refusals
	g.refusals = nil
	return found
}

func (g *goScenario) must(err error) {
	g.t.Helper()
	expect.OK(g.t, err)
}

// ask sends a request to the control server of the stage, as the programs in other languages do.
func (g *goScenario) ask(path string, body any) {
	g.t.Helper()
	text, err := json.Marshal(body)
	g.must(err)
	resp, err := http.Post(g.stage.control.URL+path, "application/json", bytes.NewReader(text))
	g.must(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		g.t.Fatalf("%s: got %d, want 200", path, resp.StatusCode)
	}
}

func (g *goScenario) report(name string, got any) {
	g.t.Helper()
	g.ask("/step", step{name, got})
}

// number returns a valid asset whose title contains n.
func number(n string) client.Asset {
	return client.Asset{
		AssetType: "bounce", Title: "Asset " + n, Description: "one entrance",
		Items: []client.Item{{
			Description:         "Hall",
			Classification:      client.Classification{Scheme: "CAV-PS", ID: "04121000-2", Description: "Hall"},
			Unit:                client.Unit{Code: "MTK"},
			Quantity:            "240.50010",
			Address:             client.Address{CountryName: "Україна"},
			Location:            &client.Location{Latitude: client.Number("50.4501000"), Longitude: client.Text("30.5234")},
			RegistrationDetails: client.RegistrationDetails{Status: "unknown"},
		}},
		Decisions: []client.Decision{{DecisionDate: "2026-11-20T12:00:00+02:00", DecisionID: "1637-10"}},
		AssetCustodian: client.Organisation{
			Name: "Fund", Identifier: client.Identifier{Scheme: "UA-EDR", ID: client.Number("32945")},
			Address:      client.Address{CountryName: "Україна"},
			ContactPoint: client.Contact{Name: "Registrar", Telephone: "+380440000000"},
		},
	}
}

// publish creates an asset and publishes it.
func (g *goScenario) publish(n string) {
	g.t.Helper()
	made, err := g.broker.Create(g.t.Context(), number(n))
	g.must(err)
	_, err = g.broker.Publish(g.t.Context(), made.Asset.ID,
		client.Write{Token: made.Access.Token, IfMatch: made.Asset.Tag})
	g.must(err)
}

// life creates, publishes, changes and hands over an asset. It returns the id and the
// owner token.
func (g *goScenario) life() (id string, owner client.Secret) {
	ctx := g.t.Context()
	made, err := g.broker.Create(ctx, number("1"))
	g.must(err)
	asset, w := made.Asset, client.Write{Token: made.Access.Token}
	item := asset.Items[0]
	g.report("create", map[string]any{"status": asset.Status, "quantity": string(item.Quantity),
		"latitude": item.Location.Latitude.String(), "id": asset.AssetCustodian.Identifier.ID.String()})
	_, err = g.broker.CreateFields(ctx, client.Fields{"assetType": "bounce", "decisions": []any{},
		"items": []any{map[string]any{
			"description": item.Description, "classification": item.Classification, "unit": item.Unit,
			"quantity": "many", "address": item.Address, "registrationDetails": item.RegistrationDetails,
		}}}, "")
	refusal, _ := errors.AsType[*client.Error](err)
	if refusal == nil {
		g.t.Fatalf("got %v, want a refusal", err)
	}
	var places []string
	for _, d := range refusal.Details {
		places = append(places, d.Location+"/"+d.Name)
	}
	slices.Sort(places)
	g.report("refuse", places)
	w.IfMatch = asset.Tag
	published, err := g.broker.Publish(ctx, asset.ID, w)
	g.must(err)
	g.report("publish", published.Status)
	g.prove(asset.ID)
	w.IfMatch = published.Tag
	changed, err := g.broker.Patch(ctx, asset.ID, client.Fields{"description": "two entrances"}, w)
	g.must(err)
	_, err = g.broker.Patch(ctx, asset.ID, client.Fields{"description": "none"}, w)
	g.report("change with a tag", map[string]any{"description": changed.Description, "stale": client.StatusOf(err)})
	g.parts(asset.ID, item.ID, made.Access.Token)
	return asset.ID, g.handOver(asset.ID, made.Access)
}

func (g *goScenario) parts(asset, item string, token client.Secret) {
	ctx, w := g.t.Context(), client.Write{Token: token}
	_, err := g.broker.Documents(asset).Add(ctx, client.Document{
		DocumentType: "illustration", Title: "Plan", URL: "https://example.com/plan", Format: "image/png",
	}, w)
	g.must(err)
	changed, err := g.broker.Items(asset).Patch(ctx, item, client.Fields{"quantity": client.Decimal("7.25")}, w)
	g.must(err)
	documents, err := g.reader.Documents(asset).List(ctx)
	g.must(err)
	g.report("parts", map[string]any{"documents": len(documents), "quantity": string(changed.Quantity)})
	path := filepath.Join(g.t.TempDir(), "plan.pdf")
	g.must(os.WriteFile(path, plan, 0o600))
	kept, err := g.broker.Documents(asset).Upload(ctx, path, client.Document{DocumentType: "notice"}, w)
	g.must(err)
	g.report("upload", map[string]any{"title": kept.Title, "format": kept.Format, "hash": kept.Hash})
}

// prove reads the proof of a published asset. It also asks for a proof of revision 1, when the asset was a draft.
func (g *goScenario) prove(asset string) {
	ctx := g.t.Context()
	proof, err := g.reader.Proof(ctx, asset, 0)
	g.must(err)
	var leaf struct {
		Revision int64
		Kind     string
	}
	g.must(json.Unmarshal(proof.Leaf, &leaf))
	var shown client.Asset
	g.must(json.Unmarshal(proof.Asset, &shown))
	_, err = g.reader.Proof(ctx, asset, 1)
	g.report("prove", map[string]any{"revision": leaf.Revision, "kind": leaf.Kind,
		"quantity": string(shown.Items[0].Quantity), "first": client.StatusOf(err)})
}

// handOver gives the asset to broker3 and returns its new owner token.
func (g *goScenario) handOver(asset string, old client.Access) client.Secret {
	ctx := g.t.Context()
	made, err := g.broker3.CreateTransfer(ctx)
	g.must(err)
	taken, err := g.broker3.TakeOver(ctx, asset, made.Transfer.ID, old.Transfer)
	g.must(err)
	_, refused := g.broker.Patch(ctx, asset, client.Fields{"description": "none"}, client.Write{Token: old.Token})
	changed, err := g.broker3.Patch(ctx, asset, client.Fields{"description": "three entrances"},
		client.Write{Token: made.Access.Token})
	g.must(err)
	g.report("hand over", map[string]any{
		"owner": taken.Owner, "old token": client.StatusOf(refused), "new token": changed.Description,
	})
	return made.Access.Token
}

// webhooks creates, changes and removes a webhook. No message is sent to it.
func (g *goScenario) webhooks() {
	ctx := g.t.Context()
	made, err := g.broker.CreateWebhook(ctx, client.WebhookSettings{URL: "https://receiver.example/", State: "disabled"})
	g.must(err)
	id := made.Webhook.ID
	_, err = g.broker.ChangeWebhook(ctx, id, client.WebhookChange{URL: "https://receiver.example/new"})
	g.must(err)
	rotated, err := g.broker.RotateWebhook(ctx, id)
	g.must(err)
	got, err := g.broker.Webhook(ctx, id)
	g.must(err)
	listed := 0
	for w, err := range g.broker.Webhooks(ctx, "") {
		g.must(err)
		if w.ID == id {
			listed++
		}
	}
	replayed, err := g.broker.ReplayWebhook(ctx, id, got.Offset)
	g.must(err)
	g.must(g.broker.RemoveWebhook(ctx, id))
	_, err = g.broker.Webhook(ctx, id)
	secret := string(rotated.Access.Secret)
	g.report("webhooks", fields{"state": got.State, "reason": got.Reason, "url": got.URL, "listed": listed,
		"rotated":  strings.HasPrefix(secret, "whsec_") && rotated.Access.Secret != made.Access.Secret,
		"replayed": replayed.State, "removed": client.StatusOf(err)})
}

// faults makes the client meet refusals, lost answers and a rate limit.
func (g *goScenario) faults(id string, owner client.Secret) {
	ctx := g.t.Context()
	g.refused()
	g.ask("/fault", fields{"Status": 429, "Times": 2})
	asset, err := g.reader.Get(ctx, id)
	g.must(err)
	g.report("429", fields{"title": asset.Title, "refusals": g.refused()})
	g.ask("/fault", fields{"Status": 503, "Times": 2})
	changed, err := g.broker3.Patch(ctx, id, client.Fields{"description": "four entrances"},
		client.Write{Token: owner, IfMatch: asset.Tag})
	g.must(err)
	g.report("503", fields{"description": changed.Description, "refusals": g.refused()})
	g.ask("/fault", fields{"Status": 503, "Times": 1, "After": true})
	g.ask("/fault", fields{"Status": 0, "Times": 1, "After": true})
	g.publish("2")
	g.report("lost answers", fields{"refusals": g.refused(), "published": g.titles(g.reader)})
	count := 0
	for range 4 {
		count += len(g.titles(g.broker)) // each page has one title
	}
	g.report("rate limit", fields{"pages": count, "refused": slices.Contains(g.refused(), 429)})
}

type fields map[string]any

// titles reads the titles of all published assets, with one asset on each page.
func (g *goScenario) titles(c *client.Client) (found []string) {
	for page, err := range c.Pages(g.t.Context(), client.Feed{Limit: 1, Fields: []string{"title"}}) {
		g.must(err)
		for _, asset := range page.Assets {
			found = append(found, asset.Title)
		}
	}
	return found
}

// change is an entry of the feed with its position.
type change struct {
	title    string
	position client.Position
}

// watch follows the feed from a position until ctx ends, and returns a channel with the entries.
func (g *goScenario) watch(ctx context.Context, feed client.Feed) <-chan change {
	found := make(chan change)
	feed.Fields = []string{"title"}
	go func() {
		defer close(found)
		for page, err := range g.client("").Follow(ctx, feed, 100*time.Millisecond) {
			if err != nil {
				if ctx.Err() == nil {
					g.t.Errorf("follow: %v", err)
				}
				return
			}
			for _, asset := range page.Assets {
				select {
				case found <- change{asset.Title, client.Position{Offset: asset.DateModified, ServerID: page.Next.ServerID}}:
				case <-ctx.Done():
				}
			}
		}
	}()
	return found
}

// follow follows the feed while the registry restarts, and then resumes it. It returns the position of an entry.
func (g *goScenario) follow() client.Position {
	g.refused()
	ctx, stop := context.WithCancel(g.t.Context())
	defer stop()
	found := g.watch(ctx, client.Feed{Limit: 2})
	g.publish("3")
	g.publish("4")
	var titles []string
	var fourth client.Position
	for range 4 {
		next := <-found
		titles, fourth = append(titles, next.title), next.position
	}
	g.ask("/restart", nil)
	g.publish("5")
	g.publish("6")
	for range 2 {
		titles = append(titles, (<-found).title)
	}
	g.report("follow through a restart", fields{"seen": titles, "interrupted": slices.Contains(g.refused(), 0)})
	resumed := g.watch(ctx, client.Feed{Position: fourth, Limit: 1})
	g.report("resume", []string{(<-resumed).title, (<-resumed).title})
	return fourth
}

// startOver follows the feed from a position that the registry does not know. The client must start over.
func (g *goScenario) startOver(position client.Position) fields {
	g.t.Helper()
	feed := client.Feed{Position: position, Fields: []string{"title"}}
	_, err := g.reader.Page(g.t.Context(), feed)
	got := fields{"unheard": client.StatusOf(err)}
	heard := 0
	for page, err := range g.reader.Follow(g.t.Context(), feed, time.Second) {
		if errors.Is(err, client.ErrStartOver) {
			heard++
			continue
		}
		g.must(err)
		got["first"] = page.Assets[0].Title
		break
	}
	got["heard"] = heard
	return got
}

// otherData sends a cookie that belongs to a different data set. The client must start over.
func (g *goScenario) otherData(position client.Position, id string, owner client.Secret) {
	position.ServerID = "gone"
	got := g.startOver(position)
	stale := g.client("broker3")
	g.ask("/cookie", fields{"Value": "gone"})
	_, err := stale.Me(g.t.Context())
	g.must(err)
	changed, err := stale.Patch(g.t.Context(), id, client.Fields{"description": "five entrances"}, client.Write{Token: owner})
	g.must(err)
	got["write"] = changed.Description
	g.report("other data", got)
}
