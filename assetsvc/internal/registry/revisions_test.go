package registry_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// history returns all revisions of an asset. It reads them as the administrator.
func history(t *testing.T, r *registry.Registry, id string) []registry.Change {
	t.Helper()
	return expect.Get(r.Revisions(t.Context(), admin, id, "", 0, registry.MaxRevisions))(t)
}

func TestEveryChangeIsKept(t *testing.T) {
	r, _, _, id := open(t)
	keyed := owner
	keyed.KeyID = "key-1"
	changed := expect.Get(r.Change(t.Context(), keyed, id, "token",
		registry.Input{Fields: parse(t, `{"title":"y","status":"pending"}`)}))(t)
	nothing := registry.Input{Fields: parse(t, `{"title":"y"}`)}
	expect.Get(r.Change(t.Context(), keyed, id, "token", nothing))(t)
	process := parse(t, `{"type":"lot","relatedProcessID":"`+strings.Repeat("d", 32)+`"}`)
	_, position, err := r.ChangePart(t.Context(), concierge, place(t, id, "related_processes", ""), "", asset.Add,
		registry.Input{Fields: process})
	expect.OK(t, err)
	got := history(t, r, id)
	want := []registry.Change{
		{Revision: 3, Position: position, By: registry.Author{Broker: "concierge", Role: asset.Concierge}},
		{Revision: 2, Position: changed.Position,
			By: registry.Author{Broker: "broker", KeyID: "key-1", Role: asset.Owner}},
		{Revision: 1, Position: got[len(got)-1].Position, By: registry.Author{Broker: "broker", Role: asset.Owner}},
	}
	for i, patch := range []string{`[{"op":"add","path":"/relatedProcesses","value":[{`,
		`[{"op":"add","path":"/rectificationPeriod"`, `[{"op":"add","path":"","value":{"id":"` + id} {
		text := string(record.Append(nil, got[i].Patch))
		if !strings.HasPrefix(text, patch) && !strings.Contains(text, strings.TrimPrefix(patch, "[")) ||
			got[i].Size != len(text) {
			t.Errorf("revision %d: got patch %s of size %d, want %s and its length", got[i].Revision, text,
				got[i].Size, patch)
		}
		got[i].Patch, got[i].Size = nil, 0
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the history differs")
	if got[2].Position >= got[1].Position {
		t.Errorf("got position %d of the creation, want less than %d of the change", got[2].Position, got[1].Position)
	}
	for _, c := range []struct {
		before int64
		limit  int
		want   string
	}{{0, 2, "3 2"}, {position, 100, "2 1"}, {changed.Position, 1, "1"}, {got[2].Position, 5, ""}} {
		page, err := r.Revisions(t.Context(), admin, id, "", c.before, c.limit)
		var revisions []string
		for _, change := range page {
			revisions = append(revisions, fmt.Sprint(change.Revision))
		}
		if err != nil || strings.Join(revisions, " ") != c.want {
			t.Errorf("%d before %d: got %v, %v; want %s", c.limit, c.before, revisions, err, c.want)
		}
	}
}

// TestEachPastRevisionCanBeMadeAgain changes an asset many times: with small and large changes, and with
// removals. Past must return each revision as it was.
func TestEachPastRevisionCanBeMadeAgain(t *testing.T) {
	r, store, _, id := open(t)
	stored := expect.Get(store.Get(t.Context(), id, registry.AnySize))(t)
	want := map[int64]string{stored.Position: string(stored.Body)}
	for i := range 100 {
		fields := fmt.Sprintf(`{"title":"title %d","description_en":%q}`, i, strings.Repeat("x", i%7*i*100))
		if i%5 == 0 {
			fields = fmt.Sprintf(`{"title":"title %d","description_en":null}`, i)
		}
		changed := expect.Get(r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, fields)}))(t)
		want[changed.Position] = string(changed.Body)
	}
	for position, body := range want {
		past, err := r.Past(t.Context(), id, position)
		expect.Must(t, err, "at %d", position)
		if !record.Equal(parse(t, body), past) { // equal, except for the order of members
			t.Errorf("at %d: got %s, want %s", position, record.Append(nil, past), body)
		}
	}
	expect.Equal(t, len(want), 101, "revisions")
	expect.ErrOf(t, registry.ErrNoCopy, "before the creation")(r.Past(t.Context(), id, 1))
}

// TestTheRecordGrowsWithWhatClientsSend changes a large asset many times, with patches of different sizes. The
// record must not grow much faster than the patches.
func TestTheRecordGrowsWithWhatClientsSend(t *testing.T) {
	for _, patch := range []int{10, 3000, 40_000} {
		r, store, _, id := open(t)
		large := record.Object{{Name: "description_en", Value: hex.EncodeToString(randomBytes(125_000))}}
		changed, err := r.Change(t.Context(), owner, id, "token", registry.Input{Fields: large})
		expect.OK(t, err)
		const changes = 25
		last := changed.Position
		for range changes {
			in := registry.Input{Fields: record.Object{
				{Name: "description", Value: hex.EncodeToString(randomBytes(patch / 2))},
			}}
			changed, err = r.Change(t.Context(), owner, id, "token", in)
			expect.OK(t, err)
		}
		page, err := store.Changes(t.Context(), registry.ChangesQuery{After: last, Limit: changes, Bytes: registry.AnySize,
			Whole: true})
		if err != nil || len(page.Changes) != changes {
			t.Fatalf("got %d changes, %v; want %d", len(page.Changes), err, changes)
		}
		size := 0
		for _, c := range page.Changes {
			size += len(c.Change) + len(c.Whole)
		}
		// A compressed copy of the asset has 125,000 bytes. By chance, the record may have several copies more
		// than expected, so the limit leaves 3 MiB for them.
		if most := 3*changes*(patch+4096) + 3<<20; size > most {
			t.Errorf("patches of %d bytes: got %d bytes in the record, want at most %d", patch, size, most)
		}
		past, err := r.Past(t.Context(), id, changed.Position)
		if err != nil || !record.Equal(parse(t, string(changed.Body)), past) {
			t.Errorf("patches of %d bytes: the asset made again differs, %v", patch, err)
		}
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}

func TestALargePatchIsNotKept(t *testing.T) {
	r, _, _, id := open(t)
	for _, c := range []struct {
		size int
		kept bool
	}{{30 << 10, true}, {33 << 10, false}} {
		in := registry.Input{Fields: record.Object{{Name: "description", Value: strings.Repeat("x", c.size)}}}
		expect.Get(r.Change(t.Context(), owner, id, "token", in))(t)
		if newest := history(t, r, id)[0]; newest.Patch != nil != c.kept || newest.Size < c.size ||
			newest.By.Broker != "broker" {
			t.Errorf("%d bytes: got %d operations and size %d, want kept %t and the full size",
				c.size, len(newest.Patch), newest.Size, c.kept)
		}
	}
}

// TestTheDeepestAssetHasRevisions changes an asset that was created under older rules. Those rules allowed any
// value as the id of an organisation, and the id here is nested as deeply as JSON may be. The record must have the
// creation and the change.
func TestTheDeepestAssetHasRevisions(t *testing.T) {
	r, store, _, id := open(t)
	stored := expect.Get(store.Get(t.Context(), id, registry.AnySize))(t)
	deep := strings.Repeat("[", record.MaxDepth-3) + strings.Repeat("]", record.MaxDepth-3)
	old := stored
	old.ID = strings.Repeat("d", 32)
	old.Body = []byte(strings.NewReplacer(id, old.ID, `"scheme":"UA-EDR","id":1`,
		`"scheme":"UA-EDR","id":`+deep).Replace(string(stored.Body)))
	old.Change = []byte(`{"by":{"broker":"broker"},"patch":[{"op":"add","path":"","value":` + string(old.Body) + `}],"size":1}`)
	expect.FatalIf(t, !strings.Contains(string(old.Body), deep), "got %s, want an asset with a deep id", old.Body)
	expect.Get(store.Create(t.Context(), old))(t)
	if got := history(t, r, old.ID); len(got) != 1 || got[0].Patch == nil {
		t.Errorf("got %v, want one change with its patch", got)
	}
	expect.Get(r.Change(t.Context(), owner, old.ID, "token",
		registry.Input{Fields: parse(t, `{"assetCustodian":{"identifier":{"id":"1"}}}`)}))(t)
	if got := history(t, r, old.ID); len(got) != 2 {
		t.Errorf("got %v, want two changes", got)
	}
}

// TestWhoReadsRevisions reads the revisions of an asset with several keys. Only the administrator and the owner with
// the token may read them (TestRefusalsNameTheReason has the other callers).
func TestWhoReadsRevisions(t *testing.T) {
	r, _, keys, id := open(t)
	for _, c := range []struct {
		name      string
		by        identity.Identity
		id, token string
		down      bool
		want      string // place that the refusal names; "": no refusal
	}{
		{"the owner", owner, id, "token", false, ""},
		{"the administrator", admin, id, "", false, ""},
		{"a caller without a key", identity.Identity{}, id, "token", false, "url/permission"},
		{"the administrator, for a missing asset", admin, strings.Repeat("0", 32), "", false, "url/asset_id"},
		{"the owner while the auth service is down", owner, id, "token", true, "url/auth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys.down = c.down
			got, err := r.Revisions(t.Context(), c.by, c.id, c.token, 0, 10)
			count := 0
			if c.want == "" {
				count = 1
			}
			if place := strings.Join(places(err), " "); place != c.want || len(got) != count {
				t.Errorf("got %v, %v; want %d changes, or a refusal at %q", got, err, count, c.want)
			}
		})
	}
}

// TestAGuardAcceptsOnlyTheRevisionThatTheClientSaw sends changes with a guard that accepts only one position of
// the asset. A change must be refused if the asset has another position when it is saved.
func TestAGuardAcceptsOnlyTheRevisionThatTheClientSaw(t *testing.T) {
	for _, c := range []struct {
		name  string
		stale bool // another request changes the asset before this one
		by    identity.Identity
		patch string
		want  fault.Kind
	}{
		{"an unchanged asset", false, owner, `{"title":"y"}`, 0},
		{"a changed asset", true, owner, `{"title":"y"}`, fault.Precondition},
		{"a changed asset and an empty patch", true, owner, `{}`, fault.Precondition},
		{"a changed asset and a bad field", true, owner, `{"title":null}`, fault.Precondition},
		{"an unchanged asset and a bad field", false, owner, `{"title":null}`, fault.Invalid},
		{"a changed asset and a caller without permission", true,
			identity.Identity{Broker: "x", Role: identity.Broker}, `{"title":"y"}`, fault.Forbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, _, id := open(t)
			seen, err := r.Read(t.Context(), id)
			expect.OK(t, err)
			if c.stale {
				expect.Get(r.Change(t.Context(), owner, id, "token",
					registry.Input{Fields: parse(t, `{"title":"z"}`)}))(t)
			}
			guard := func(position int64) bool { return position == seen.Position }
			_, err = r.Change(t.Context(), c.by, id, "token", registry.Input{Fields: parse(t, c.patch), Guard: guard})
			if kind := fault.KindOf(err); kind != c.want || c.want == 0 && err != nil {
				t.Errorf("got %v, want kind %v", err, c.want)
			}
		})
	}
}

func TestOfFiftyChangesWithOneGuardOneSucceeds(t *testing.T) {
	r, _, _, id := open(t)
	seen := expect.Get(r.Read(t.Context(), id))(t)
	guard := func(position int64) bool { return position == seen.Position }
	var wg sync.WaitGroup
	won := make(chan int, 50)
	for i := range cap(won) {
		wg.Go(func() {
			in := registry.Input{Fields: parse(t, fmt.Sprintf(`{"title":"%d"}`, i)), Guard: guard}
			switch _, err := r.Change(t.Context(), owner, id, "token", in); {
			case err == nil:
				won <- i
			case fault.KindOf(err) != fault.Precondition:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 || len(history(t, r, id)) != 2 {
		t.Errorf("got %d changes and %d revisions, want 1 and 2", len(won), len(history(t, r, id)))
	}
}
