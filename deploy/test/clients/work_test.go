package clients

import (
	"encoding/json"
	"errors"
	"strings"

	"asset-registry.example/client"
)

// backToWork loses the answer to a creation. It finds the asset by its reference, gets new tokens for it, and
// removes it.
func (g *goScenario) backToWork() {
	ctx := g.t.Context()
	create := func(n string) (client.Created, error) {
		text, err := json.Marshal(number(n))
		g.must(err)
		var asset client.Fields
		g.must(json.Unmarshal(text, &asset))
		return g.broker.CreateReferenced(ctx, asset, "lot-9", "")
	}
	own := func(of client.Own) (found []string) {
		for page, err := range g.broker.OwnPages(ctx, of) {
			g.must(err)
			for _, asset := range page.Assets {
				found = append(found, asset.Reference)
			}
		}
		return found
	}
	made, err := create("9")
	g.must(err)
	id := made.Asset.ID
	again, err := create("9")
	g.must(err)
	_, other := create("10")
	refusal, _ := errors.AsType[*client.Error](other)
	if refusal == nil {
		g.t.Fatalf("got %v, want a refusal", other)
	}
	listed := own(client.Own{Limit: 1, Status: client.Draft, Fields: []string{"reference"}})
	recovered, err := g.client("administrator").Recover(ctx, id, "the answer was lost")
	g.must(err)
	_, old := g.broker.Patch(ctx, id, client.Fields{"description": "none"}, client.Write{Token: made.Access.Token})
	w := client.Write{Token: recovered.Access.Token, IfMatch: recovered.Asset.Tag}
	found, err := g.broker.Patch(ctx, id, client.Fields{"description": "found"}, w)
	g.must(err)
	g.must(g.broker.Remove(ctx, id, client.Write{Token: recovered.Access.Token}))
	_, gone := g.reader.Get(ctx, id)
	_, repeat := create("9")
	g.report("back to work", fields{"again": again.Asset.ID == id,
		"tokens": string(again.Access.Token + again.Access.Transfer), "other": client.StatusOf(other),
		"named": strings.Contains(refusal.Details[0].Description, id), "own": listed, "old token": client.StatusOf(old),
		"new token": found.Description, "removed": client.StatusOf(gone),
		"left": len(own(client.Own{Status: client.Draft})), "repeat": client.StatusOf(repeat)})
}
