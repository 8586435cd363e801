package e2e

import (
	"fmt"
	"testing"
)

// longLife is a number of changes that does not fit on one page of the record.
const longLife = 250

// liveLong creates an asset and changes it until it has longLife revisions.
func (a api) liveLong(t *testing.T) created {
	t.Helper()
	c := a.publish(t, validAsset())
	for i := 3; i <= longLife; i++ {
		c.answer = a.patch(t, c, fields{"description": fmt.Sprint("зміна ", i)}).must(t, 200)
	}
	return c
}

// record reads the whole record of an asset page by page, the newest change first.
func (a api) record(t *testing.T, id, key, token string) (all []any) {
	t.Helper()
	for path := "/assets/" + id + "/revisions"; ; {
		got := a.do(t, call{method: "GET", path: path, key: key, token: token}).must(t, 200)
		page := list(got.json["data"])
		if len(page) == 0 {
			return all
		}
		if len(page) > 100 {
			t.Fatalf("%s: got %d changes, want at most 100 on a page", path, len(page))
		}
		all, path = append(all, page...), text(at(got.json, "next_page.path"))
	}
}

// testLongLife reads all changes of an asset whose record has more than one page (docs/contract.md,
// "Revisions"). The pages must have each change once, the newest first.
// Promises: revisions
func testLongLife(t *testing.T, a api) {
	c := a.liveLong(t)
	checkLongLife(t, a.record(t, c.id, "broker", c.token), c)
	newest := a.record(t, c.id, "administrator", "")
	equal(t, "record for the administrator", len(newest), longLife)
}

// checkLongLife checks that a record has all changes that liveLong made, the newest first.
func checkLongLife(t *testing.T, record []any, c created) {
	t.Helper()
	if len(record) != longLife {
		t.Fatalf("got %d changes, want all %d", len(record), longLife)
	}
	equal(t, "date of the newest change", at(record[0], "date"), c.data()["dateModified"])
	for i, change := range record {
		n := longLife - i // number of the change, from 1
		if i > 0 && text(at(change, "date")) >= text(at(record[i-1], "date")) {
			t.Errorf("change %d: got the date %v, want one before %v", n, at(change, "date"), at(record[i-1], "date"))
		}
		if want := any(fmt.Sprint("зміна ", n)); n > 2 && at(change, "changes.0.value") != want {
			t.Errorf("change %d: got %v, want %v", n, at(change, "changes"), want)
		}
	}
	creation := record[longLife-1]
	equal(t, "revision of the creation", fmt.Sprint(at(creation, "revision")), "1")
	equal(t, "path of the creation", at(creation, "changes.0.path"), any(""))
}

// records returns the records of several assets. The keys are ids of assets.
func (a api) records(t *testing.T, assets []created) map[string][]any {
	t.Helper()
	all := map[string][]any{}
	for _, c := range assets {
		all[c.id] = a.record(t, c.id, "broker", c.token)
	}
	return all
}
