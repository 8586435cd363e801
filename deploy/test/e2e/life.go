package e2e

import (
	"reflect"
	"slices"
	"testing"
)

// move takes an asset to another state.
func (a api) move(t *testing.T, key string, c created, status string) answer {
	t.Helper()
	return a.as(t, key, c, "PATCH", "/assets/"+c.id, fields{"status": status})
}

// testSold walks an asset from its draft to its sale: with a first attempt
// that is sent back twice, and everybody trying what is not theirs to do.
func testSold(t *testing.T, a api) {
	stranger := "broker3"
	c := a.create(t, validAsset().without("items").without("decisions"))
	refused := func(status string, keys ...string) {
		t.Helper()
		for _, key := range keys {
			if got := a.move(t, key, c, status); got.status != 403 || got.json["status"] != "error" {
				t.Errorf("%s takes it to %s: answered %d %s", key, status, got.status, got.text)
			}
		}
	}
	period := func(d map[string]any) (start, end string) {
		return text(at(d, "rectificationPeriod.startDate")), text(at(d, "rectificationPeriod.endDate"))
	}

	// Draft: it takes an item and a decision to publish it.
	a.move(t, "broker", c, "pending").fails(t, 400, "body/data")
	a.add(t, "broker", c, "items", object(at(map[string]any(validAsset()), "items.0")))
	a.move(t, "broker", c, "pending").fails(t, 400, "body/data")
	a.add(t, "broker", c, "decisions", fields{"decisionDate": "2026-11-21", "decisionID": "1"})
	refused("deleted", "broker", "concierge", "administrator", stranger)
	refused("pending", "concierge", stranger)
	d := a.move(t, "broker", c, "pending").must(t, 200).data()
	published, end := period(d)
	if a.version != "2.4" && (published != d["date"] || end != "") {
		t.Errorf("published: %v", d)
	}

	// Pending: it is the owner's to complete, and the concierge's to verify.
	item, _ := a.add(t, "broker", c, "items", object(at(map[string]any(validAsset()), "items.0")))
	a.as(t, "broker", c, "PATCH", item, fields{"quantity": 7}).must(t, 200)
	a.add(t, "broker", c, "documents", validDocument())
	refused("draft", "broker", "concierge", "administrator")
	refused("verification", "broker", stranger)
	refused("active", "broker", "concierge", "administrator")
	a.move(t, "concierge", c, "verification").must(t, 200)

	// Verification: the owner has no say any more.
	refused("pending", "broker", stranger)
	for _, try := range []struct {
		kind string
		sent any
	}{{"items", object(at(map[string]any(validAsset()), "items.0"))},
		{"decisions", fields{"decisionDate": "2026-11-21", "decisionID": "2"}}, {"documents", validDocument()}} {
		a.as(t, "broker", c, "POST", c.of(try.kind), try.sent).fails(t, 403, "body/data")
		a.as(t, "broker", c, "POST", c.of(try.kind), fields{}).must(t, 400)
	}
	a.move(t, "concierge", c, "active").fails(t, 400, "body/relatedProcesses")
	a.move(t, "concierge", c, "pending").must(t, 200)
	a.as(t, "broker", c, "PATCH", "/assets/"+c.id, fields{"title": "виправлена назва"}).must(t, 200)
	a.move(t, "concierge", c, "verification").must(t, 200)
	process, _ := a.add(t, "concierge", c, "related_processes", validProcess().set("type", "auction"))
	a.move(t, "concierge", c, "active").fails(t, 400, "body/relatedProcesses")
	a.as(t, "concierge", c, "PATCH", process, fields{"type": "lot"}).must(t, 200)
	d = a.move(t, "concierge", c, "active").must(t, 200).data()
	if start, end := period(d); a.version != "2.4" && (start != published || end != d["date"]) {
		t.Errorf("active: %v", d)
	}

	// Active: it keeps its lot, and can be sent back once more.
	a.do(t, call{method: "DELETE", path: process, key: "concierge"}).fails(t, 400, "body/relatedProcesses")
	refused("complete", "broker", stranger)
	refused("verification", "broker", "concierge", "administrator")
	d = a.move(t, "administrator", c, "pending").must(t, 200).data()
	if start, end := period(d); a.version != "2.4" && (start != published || end != "") ||
		at(d, "relatedProcesses.0.type") != "lot" {
		t.Errorf("sent back: %v", d)
	}
	a.move(t, "administrator", c, "verification").must(t, 200)
	a.move(t, "administrator", c, "active").must(t, 200)
	d = a.move(t, "concierge", c, "complete").must(t, 200).data()

	a.settled(t, c, d)
	// the concierge's to keep in order for ever
	got := a.do(t, call{method: "DELETE", path: process, key: "concierge"}).must(t, 200)
	if data, there := got.json["data"]; !there || data != nil {
		t.Errorf("removed: %s", got.text)
	}
	if after := a.read(t, c.id).data(); after["relatedProcesses"] != nil ||
		text(after["dateModified"]) <= text(d["dateModified"]) {
		t.Errorf("after the removal: %v", after)
	}
}

// testDeleted walks an asset from its draft to its deletion.
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

// settled checks that nobody changes an asset any more that has come to its
// end in state d.
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
	if after := a.read(t, c.id).must(t, 200).data(); !reflect.DeepEqual(after, d) {
		t.Errorf("it was %v, and is %v", d, after)
	}
	newest := list(a.do(t, call{method: "GET", path: "/assets?descending=1&mode=_all_&opt_fields=status"}).must(t, 200).
		json["data"])
	if entry := map[string]any{"id": c.id, "dateModified": d["dateModified"],
		"status": d["status"]}; !slices.ContainsFunc(newest,
		func(e any) bool { return reflect.DeepEqual(e, any(entry)) }) {
		t.Errorf("%v is not in the feed", entry)
	}
}

// testSecondBroker walks an asset to its sale that changes hands on the way: in
// the first broker's time as a draft and published, in the second's corrected,
// and once more when it was sent back.
func testSecondBroker(t *testing.T, a api) {
	c := a.create(t, validAsset())
	token := text(at(c.json["access"], "transfer"))
	a.patch(t, c, fields{"status": "pending"}).must(t, 200)
	a.add(t, "broker", c, "documents", validDocument())
	first := a.makeTransfer(t, "broker3")
	a.takeOver(t, "broker3", c.id, first.id, token).must(t, 200)

	second := created{id: c.id, token: first.token}
	item, _ := a.add(t, "broker3", second, "items", object(at(map[string]any(validAsset()), "items.0")))
	a.as(t, "broker3", second, "PATCH", item, fields{"quantity": 3}).must(t, 200)
	a.as(t, "broker", c, "PATCH", item, fields{"quantity": 4}).fails(t, 403, "url/permission")
	a.move(t, "concierge", second, "verification").must(t, 200)

	// In any state it may change hands, and gives nobody rights that its state does not.
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
		t.Errorf("sold: %v", d)
	}
	a.settled(t, third, d)
}
