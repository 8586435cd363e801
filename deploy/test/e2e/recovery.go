package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// recoverTokens gives an asset new tokens and returns the asset with them.
func (a api) recoverTokens(t *testing.T, c created) (created, string) {
	t.Helper()
	got := a.do(t, call{method: "POST", path: "/assets/" + c.id + "/recovery", key: "administrator",
		body: data(fields{"reason": "загублено sesame"})}).must(t, 200)
	token, transfer := text(at(got.json["access"], "token")), text(at(got.json["access"], "transfer"))
	if !idForm.MatchString(token) || !idForm.MatchString(transfer) || token == c.token ||
		strings.Contains(got.text, "sesame") {
		t.Fatalf("got %s, want two new tokens and no reason", got.text)
	}
	return created{answer: got, id: c.id, token: token}, transfer
}

// testRecovery gives an asset new tokens in each state (docs/contract.md, "Recovery").
// Promises: recovery-tokens, recovery-states, recovery-reason
func testRecovery(t *testing.T, a api) {
	a.inEachState(t, func(c created, state string) {
		first, was := text(at(c.json["access"], "transfer")), a.read(t, c.id).data()
		got, transfer := a.recoverTokens(t, c)
		if got.data()["status"] != state || got.data()["owner"] != was["owner"] ||
			text(got.data()["dateModified"]) <= text(was["dateModified"]) {
			t.Errorf("got %s, want the state %s, the owner %v and a later dateModified", got.text, state, was["owner"])
		}
		if first != "" { // version 2.4 shows no transfer token
			a.takeOver(t, "broker3", c.id, a.makeTransfer(t, "broker3").id, first).fails(t, 403, "body/transfer")
		}
		revisions := func(c created) answer {
			return a.do(t, call{method: "GET", path: "/assets/" + c.id + "/revisions", key: "broker", token: c.token})
		}
		revisions(c).fails(t, 403, "url/permission")
		shown := revisions(got).must(t, 200)
		newest := list(shown.json["data"])[0]
		if at(newest, "author.role") != "administrator" || len(list(at(newest, "changes"))) != 0 ||
			strings.Contains(shown.text, "sesame") {
			t.Errorf("got the revisions %s, want an administrator's without changes first, and no reason", shown.text)
		}
		a.takeOver(t, "broker3", c.id, a.makeTransfer(t, "broker3").id, transfer).must(t, 200)
		revisions(got).fails(t, 403, "url/permission")
	})
}

// testRecoveryRaces recovers an asset many times at the same time, while its owner changes it. Afterwards, only the
// tokens of the recovery with the newest dateModified must work.
func testRecoveryRaces(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	got := make([]answer, 6)
	var racing sync.WaitGroup
	for i := range got {
		racing.Go(func() {
			got[i] = a.do(t, call{method: "POST", path: "/assets/" + c.id + "/recovery", key: "administrator",
				body: data(fields{"reason": fmt.Sprint("race ", i)})})
		})
	}
	racing.Go(func() {
		for i := range 6 {
			changed := a.patch(t, c, fields{"description": fmt.Sprint("change ", i)})
			if changed.status != 200 && changed.status != 403 {
				t.Errorf("the owner: got %d %s, want 200 or 403", changed.status, changed.text)
			}
		}
	})
	racing.Wait()
	newest := 0
	for i, g := range got {
		g.must(t, 200)
		if text(g.data()["dateModified"]) > text(got[newest].data()["dateModified"]) {
			newest = i
		}
	}
	for i, g := range got {
		held := created{id: c.id, token: text(at(g.json["access"], "token"))}
		changed := a.patch(t, held, fields{"description": fmt.Sprint("after ", i)})
		if good := changed.status == 200; good != (i == newest) {
			t.Errorf("recovery %d: got %d %s, want its token to be good: %t", i, changed.status, changed.text, i == newest)
		}
	}
}
