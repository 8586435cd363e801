package e2e

import (
	"reflect"
	"slices"
	"testing"
)

// move sends a request that changes the status of an asset.
func (a api) move(t *testing.T, key string, c created, status string) answer {
	t.Helper()
	return a.as(t, key, c, "PATCH", "/assets/"+c.id, fields{"status": status})
}

// sale is an asset on its way from draft to complete.
type sale struct {
	api
	asset   created
	start   string // start of the rectification period
	process string // path of the asset's related process
}

// testSold takes an asset from draft to complete. On the way, the concierge sends it back once from verification, and
// the administrator once from active. In each state, the other roles try the steps that they are not allowed to take
// (docs/contract.md, "States").
func testSold(t *testing.T, a api) {
	s := &sale{api: a, asset: a.create(t, validAsset().without("items").without("decisions"))}
	s.publish(t)
	s.complete(t)
	s.verify(t)
	s.approve(t)
	s.sendBack(t)
	sold := s.move(t, "concierge", s.asset, "complete").must(t, 200).data()
	s.settled(t, s.asset, sold)
	s.removeProcess(t, sold)
}

// refuses checks that none of the keys can move the asset to a state.
func (s *sale) refuses(t *testing.T, status string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if got := s.move(t, key, s.asset, status); got.status != 403 || got.json["status"] != "error" {
			t.Errorf("%s moves it to %s: got %d %s, want 403", key, status, got.status, got.text)
		}
	}
}

// checkPeriod checks start and end of the rectification period. Version 2.4 does not show the period.
func (s *sale) checkPeriod(t *testing.T, d map[string]any, start, end string) {
	t.Helper()
	gotStart, gotEnd := text(at(d, "rectificationPeriod.startDate")), text(at(d, "rectificationPeriod.endDate"))
	if s.version != "2.4" && (gotStart != start || gotEnd != end) {
		t.Errorf("got the rectification period %q to %q, want %q to %q", gotStart, gotEnd, start, end)
	}
}

// publish moves the draft to pending. This step requires an item and a decision.
func (s *sale) publish(t *testing.T) {
	s.move(t, "broker", s.asset, "pending").fails(t, 400, "body/data")
	s.add(t, "broker", s.asset, "items", validItem())
	s.move(t, "broker", s.asset, "pending").fails(t, 400, "body/data")
	s.add(t, "broker", s.asset, "decisions", fields{"decisionDate": "2026-11-21", "decisionID": "1"})
	s.refuses(t, "deleted", "broker", "concierge", "administrator", "broker3")
	s.refuses(t, "pending", "concierge", "broker3")
	d := s.move(t, "broker", s.asset, "pending").must(t, 200).data()
	s.start = text(at(d, "rectificationPeriod.startDate"))
	s.checkPeriod(t, d, text(d["date"]), "")
}

// complete lets the owner change the pending asset, and the concierge move it to verification.
func (s *sale) complete(t *testing.T) {
	item, _ := s.add(t, "broker", s.asset, "items", validItem())
	s.as(t, "broker", s.asset, "PATCH", item, fields{"quantity": 7}).must(t, 200)
	s.add(t, "broker", s.asset, "documents", validDocument())
	s.refuses(t, "draft", "broker", "concierge", "administrator")
	s.refuses(t, "verification", "broker", "broker3")
	s.refuses(t, "active", "broker", "concierge", "administrator")
	s.move(t, "concierge", s.asset, "verification").must(t, 200)
}

// verify checks that the owner cannot change the asset in verification, and that
// the concierge can send it back.
func (s *sale) verify(t *testing.T) {
	s.refuses(t, "pending", "broker", "broker3")
	for _, part := range []struct {
		kind string
		sent any
	}{
		{"items", validItem()},
		{"decisions", fields{"decisionDate": "2026-11-21", "decisionID": "2"}},
		{"documents", validDocument()},
	} {
		s.as(t, "broker", s.asset, "POST", s.asset.of(part.kind), part.sent).fails(t, 403, "body/data")
		s.as(t, "broker", s.asset, "POST", s.asset.of(part.kind), fields{}).must(t, 400)
	}
	s.move(t, "concierge", s.asset, "active").fails(t, 400, "body/relatedProcesses")
	s.move(t, "concierge", s.asset, "pending").must(t, 200)
	s.as(t, "broker", s.asset, "PATCH", "/assets/"+s.asset.id, fields{"title": "виправлена назва"}).must(t, 200)
}

// approve moves the asset to active. This step requires a related process of type lot.
func (s *sale) approve(t *testing.T) {
	s.move(t, "concierge", s.asset, "verification").must(t, 200)
	s.process, _ = s.add(t, "concierge", s.asset, "related_processes", validProcess().set("type", "auction"))
	s.move(t, "concierge", s.asset, "active").fails(t, 400, "body/relatedProcesses")
	s.as(t, "concierge", s.asset, "PATCH", s.process, fields{"type": "lot"}).must(t, 200)
	d := s.move(t, "concierge", s.asset, "active").must(t, 200).data()
	s.checkPeriod(t, d, s.start, text(d["date"]))
}

// sendBack moves the active asset to pending and then to active again. The asset must keep its lot.
func (s *sale) sendBack(t *testing.T) {
	s.do(t, call{method: "DELETE", path: s.process, key: "concierge"}).fails(t, 400, "body/relatedProcesses")
	s.refuses(t, "complete", "broker", "broker3")
	s.refuses(t, "verification", "broker", "concierge", "administrator")
	d := s.move(t, "administrator", s.asset, "pending").must(t, 200).data()
	s.checkPeriod(t, d, s.start, "")
	equal(t, "type of the process after the way back", at(d, "relatedProcesses.0.type"), any("lot"))
	s.move(t, "administrator", s.asset, "verification").must(t, 200)
	s.move(t, "administrator", s.asset, "active").must(t, 200)
}

// removeProcess removes the related process of a sold asset as the concierge. This is allowed in every state.
func (s *sale) removeProcess(t *testing.T, sold map[string]any) {
	got := s.do(t, call{method: "DELETE", path: s.process, key: "concierge"}).must(t, 200)
	if data, there := got.json["data"]; !there || data != nil {
		t.Errorf("got %s for the removal, want data null", got.text)
	}
	after := s.read(t, s.asset.id).data()
	if after["relatedProcesses"] != nil || text(after["dateModified"]) <= text(sold["dateModified"]) {
		t.Errorf("got %v after the removal, want no process and a later dateModified", after)
	}
}

// testDeleted takes an asset from draft to deleted. The last step requires a document of type cancellationDetails.
// Promises: feed
func testDeleted(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	a.move(t, "broker", c, "deleted").fails(t, 403, "body/mode")
	path, _ := a.add(t, "broker", c, "documents", validDocument())
	a.move(t, "administrator", c, "deleted").fails(t, 403, "body/mode")
	a.as(t, "broker", c, "PATCH", path, fields{"documentType": "cancellationDetails"}).must(t, 200)
	for _, key := range []string{"concierge", "broker3"} {
		a.move(t, key, c, "deleted").fails(t, 403, "body/data")
	}
	d := a.move(t, "broker", c, "deleted").must(t, 200).data()
	a.settled(t, c, d)
}

// settled checks that nobody can change an asset in a final state. The parameter d is the data of the asset in that
// state.
func (a api) settled(t *testing.T, c created, d map[string]any) {
	t.Helper()
	for _, key := range []string{"broker", "concierge", "administrator", "broker3"} {
		for _, status := range []string{"draft", "pending", "verification", "active", "complete", "deleted"} {
			a.move(t, key, c, status).fails(t, 403, "body/data")
		}
		a.as(t, key, c, "PATCH", "/assets/"+c.id, fields{"title": "x"}).fails(t, 403, "body/data")
		a.as(t, key, c, "PUT", "/assets/"+c.id, validAsset()).fails(t, 403, "body/data")
	}
	for _, try := range []struct {
		kind  string
		patch fields
	}{{"items", fields{"description": "x"}}, {"decisions", fields{"title": "x"}}, {"documents", fields{"title": "x"}}} {
		path := c.of(try.kind) + "/" + text(at(d, try.kind+".0.id"))
		a.as(t, "broker", c, "PATCH", path, try.patch).fails(t, 403, "body/data")
		a.as(t, "administrator", c, "PATCH", path, try.patch).fails(t, 403, "url/permission")
	}
	equal(t, "asset in its final state", a.read(t, c.id).must(t, 200).data(), d)
	newest := list(a.do(t, call{method: "GET", path: "/assets?descending=1&mode=_all_&opt_fields=status"}).must(t, 200).
		json["data"])
	if entry := map[string]any{"id": c.id, "dateModified": d["dateModified"],
		"status": d["status"]}; !slices.ContainsFunc(newest,
		func(e any) bool { return reflect.DeepEqual(e, any(entry)) }) {
		t.Errorf("got no %v in the feed, want it there", entry)
	}
}

// testSecondBroker sells an asset that changes its owner twice: in the state pending, and in verification. Only the
// current owner may change the asset.
func testSecondBroker(t *testing.T, a api) {
	c := a.create(t, validAsset())
	token := text(at(c.json["access"], "transfer"))
	a.patch(t, c, fields{"status": "pending"}).must(t, 200)
	a.add(t, "broker", c, "documents", validDocument())
	first := a.makeTransfer(t, "broker3")
	a.takeOver(t, "broker3", c.id, first.id, token).must(t, 200)

	second := created{id: c.id, token: first.token}
	item, _ := a.add(t, "broker3", second, "items", validItem())
	a.as(t, "broker3", second, "PATCH", item, fields{"quantity": 3}).must(t, 200)
	a.as(t, "broker", c, "PATCH", item, fields{"quantity": 4}).fails(t, 403, "url/permission")
	a.move(t, "concierge", second, "verification").must(t, 200)

	// The owner of an asset can change in every state. The new owner may do only what the state allows.
	other := a.makeTransfer(t, "broker")
	a.takeOver(t, "broker", c.id, other.id, first.transfer).must(t, 200)
	third := created{id: c.id, token: other.token}
	a.as(t, "broker", third, "PATCH", "/assets/"+c.id, fields{"title": "ще не час"}).fails(t, 403, "body/data")
	a.move(t, "concierge", third, "pending").must(t, 200)
	a.as(t, "broker", third, "PATCH", "/assets/"+c.id, fields{"title": "тепер можна"}).must(t, 200)
	a.as(t, "broker3", second, "PATCH", "/assets/"+c.id, fields{"title": "уже ні"}).fails(t, 403, "body/data")
	a.add(t, "concierge", third, "related_processes", validProcess())
	for _, status := range []string{"verification", "active"} {
		a.move(t, "concierge", third, status).must(t, 200)
	}
	d := a.move(t, "administrator", third, "complete").must(t, 200).data()
	if d["owner"] != "broker" || len(list(d["items"])) != 2 {
		t.Errorf("got %v, want the owner broker and two items", d)
	}
	a.settled(t, third, d)
}
