package e2e

import (
	"fmt"
	"sync"
	"testing"
)

// transferring is a transfer with its owner token and its transfer token.
type transferring struct{ id, token, transfer string }

// makeTransfer creates a transfer and checks its form.
func (a api) makeTransfer(t *testing.T, key string) transferring {
	t.Helper()
	got := a.do(t, call{method: "POST", path: "/transfers", key: key, body: data(fields{})}).must(t, 201)
	made := transferring{text(got.data()["id"]), text(at(got.json["access"], "token")),
		text(at(got.json["access"], "transfer"))}
	if !idForm.MatchString(made.id) || !idForm.MatchString(made.token) || !idForm.MatchString(made.transfer) ||
		len(got.data()) != 2 || !timeForm.MatchString(text(got.data()["date"])) {
		t.Fatalf("got %s, want an id, a date and two tokens", got.text)
	}
	return made
}

// takeOver gives an asset to the broker with the given key. It sends the asset's transfer token.
func (a api) takeOver(t *testing.T, key, asset, transfer, token string) answer {
	t.Helper()
	return a.do(t, call{method: "POST", path: "/assets/" + asset + "/ownership", key: key,
		body: data(fields{"id": transfer, "transfer": token})})
}

// testTransfer gives an asset to another broker, and back (docs/contract.md, "Ownership" and "Transfers"). Only the new
// owner may then change the asset.
// Promises: ids
func testTransfer(t *testing.T, a api) {
	c, token := a.publishWithTransfer(t)
	made := a.makeTransfer(t, "broker3")
	path := "/transfers/" + made.id
	shown := a.do(t, call{method: "GET", path: path}).must(t, 200).data()
	if len(shown) != 2 || shown["id"] != made.id {
		t.Errorf("got the transfer %v, want its id and date alone", shown)
	}
	a.takeOver(t, "nobody", c.id, made.id, token).fails(t, 401, "header/Authorization")
	a.takeOver(t, "broker1", c.id, made.id, token).fails(t, 403, "body/data")
	a.takeOver(t, "broker3", c.id, made.id, c.token).fails(t, 403, "body/transfer")
	a.takeOver(t, "broker", c.id, made.id, token).fails(t, 403, "body/transfer") // only broker3 may use its transfer

	taken := a.takeOver(t, "broker3", c.id, made.id, token).must(t, 200)
	if taken.data()["owner"] != "broker3" || text(taken.data()["dateModified"]) <= text(c.data()["dateModified"]) ||
		taken.json["access"] != nil {
		t.Errorf("got %s, want the owner broker3, a later dateModified and no tokens", taken.text)
	}
	used := a.do(t, call{method: "GET", path: path}).must(t, 200).data()
	if used["usedFor"] != "/assets/"+c.id || len(used) != 3 {
		t.Errorf("got the used transfer %v, want usedFor as third field", used)
	}
	a.patch(t, c, fields{"description": "чужий"}).fails(t, 403, "body/data")
	mine := created{id: c.id, token: made.token}
	a.as(t, "broker3", mine, "PATCH", "/assets/"+c.id, fields{"description": "мій"}).must(t, 200)
	a.as(t, "broker", mine, "PATCH", "/assets/"+c.id, fields{"description": "чужий"}).fails(t, 403, "body/data")

	// Repeating the same request changes nothing. The tokens must not work for another asset or transfer.
	before := a.read(t, c.id).data()["dateModified"]
	again := a.takeOver(t, "broker3", c.id, made.id, token).must(t, 200)
	equal(t, "dateModified after a repeat", again.data()["dateModified"], before)
	a.takeOver(t, "broker3", c.id, a.makeTransfer(t, "broker3").id, token).fails(t, 403, "body/transfer")
	other, otherToken := a.publishWithTransfer(t)
	a.takeOver(t, "broker3", other.id, made.id, otherToken).fails(t, 403, "body/transfer")

	back := a.makeTransfer(t, "broker")
	a.takeOver(t, "broker", c.id, back.id, made.transfer).must(t, 200)
	a.patch(t, created{id: c.id, token: back.token}, fields{"description": "знову мій"}).must(t, 200)
	a.as(t, "broker3", mine, "PATCH", "/assets/"+c.id, fields{"description": "чужий"}).fails(t, 403, "body/data")
}

// publishWithTransfer returns a published asset and its transfer token.
func (a api) publishWithTransfer(t *testing.T) (created, string) {
	t.Helper()
	c := a.create(t, validAsset())
	token := text(at(c.json["access"], "transfer"))
	c.answer = a.patch(t, c, fields{"status": "pending"}).must(t, 200)
	return c, token
}

// testTransferRaces first sends four requests for one asset at the same time. Then it uses one transfer for four assets
// at the same time. Each time, exactly one request must succeed.
func testTransferRaces(t *testing.T, a api) {
	raceForAsset(t, a)
	raceForTransfer(t, a)
}

// raceForAsset sends requests of brokers for an asset while its old owner changes the asset. Exactly one of the
// requests must succeed.
func raceForAsset(t *testing.T, a api) {
	keys := []string{"broker3", "broker", "broker3", "broker"}
	c, token := a.publishWithTransfer(t)
	made := make([]transferring, len(keys))
	got := make([]answer, len(keys))
	for i, key := range keys {
		made[i] = a.makeTransfer(t, key)
	}
	var racing sync.WaitGroup
	for i, key := range keys {
		racing.Go(func() { got[i] = a.takeOver(t, key, c.id, made[i].id, token) })
	}
	racing.Go(func() {
		for i := range 10 {
			got := a.patch(t, c, fields{"description": fmt.Sprint("change ", i)})
			if got.status != 200 && got.status != 403 {
				t.Errorf("the old owner: got %d %s, want 200 or 403", got.status, got.text)
			}
		}
	})
	racing.Wait()
	won := -1
	for i, g := range got {
		switch {
		case g.status == 200 && won < 0:
			won = i
		case g.status == 200:
			t.Errorf("got the asset for broker %d and broker %d, want it for one", won, i)
		case g.status != 403:
			t.Errorf("broker %d: got %d %s, want 200 or 403", i, g.status, g.text)
		}
	}
	if won < 0 {
		t.Fatal("got the asset for no broker, want it for one")
	}
	for i, key := range keys {
		status := a.as(t, key, created{id: c.id, token: made[i].token}, "PATCH", "/assets/"+c.id,
			fields{"description": "мій"}).status
		if (status == 200) != (i == won) {
			t.Errorf("the token of broker %d: got %d, want 200 for broker %d alone", i, status, won)
		}
	}
	a.patch(t, c, fields{"description": "чужий"}).must(t, 403)
	for i, key := range keys {
		if used := a.usedFor(t, made[i].id); (used != "") != (i == won) {
			t.Errorf("the transfer of broker %d: got usedFor %q, want it for broker %d alone", i, used, won)
		}
		if i != won { // this transfer was not used up, so it still works
			other, token := a.publishWithTransfer(t)
			a.takeOver(t, key, other.id, made[i].id, token).must(t, 200)
			equal(t, "usedFor of a transfer that lost a race before", a.usedFor(t, made[i].id), "/assets/"+other.id)
		}
	}
}

// usedFor returns the asset that a transfer was used for, or "".
func (a api) usedFor(t *testing.T, transfer string) string {
	t.Helper()
	return text(a.do(t, call{method: "GET", path: "/transfers/" + transfer}).must(t, 200).data()["usedFor"])
}

// raceForTransfer uses one transfer of a broker for four assets at the same time. Exactly one asset must get the
// new owner.
func raceForTransfer(t *testing.T, a api) {
	one := a.makeTransfer(t, "broker3")
	assets := make([]created, 4)
	var racing sync.WaitGroup
	for i := range assets {
		var token string
		assets[i], token = a.publishWithTransfer(t)
		racing.Go(func() { assets[i].answer = a.takeOver(t, "broker3", assets[i].id, one.id, token) })
	}
	racing.Wait()
	taken := 0
	for _, c := range assets {
		if c.status == 200 {
			taken++
		} else {
			c.fails(t, 403, "body/transfer")
		}
	}
	if taken != 1 {
		t.Errorf("got %d assets for one transfer, want 1", taken)
	}
}
