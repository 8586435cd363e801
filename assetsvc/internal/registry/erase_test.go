package registry_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// TestErasedRevisions erases revisions of an asset in several orders. Their content and their salts must be gone,
// their leaves must stay, and all other revisions must be provable as before.
func TestErasedRevisions(t *testing.T) {
	for _, order := range [][]int64{{3}, {3, 4, 5}, {5, 4, 3}, {4, 3, 4}, {1}, {1, 2, 3, 4, 5, 6}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			p := newProver(t)
			p.change(t, `{"status":"pending"}`)
			leaves := map[int64]string{}
			for i := 3; i <= 7; i++ {
				p.change(t, fmt.Sprintf(`{"title":"secret %d"}`, i))
			}
			for revision := int64(2); revision <= 7; revision++ {
				leaves[revision] = p.proved(t, revision).leaf
			}
			erased := map[int64]bool{}
			for _, revision := range order {
				change, err := p.Erase(t.Context(), admin, p.id, revision)
				if err != nil || change.Erased == nil || change.Revision != revision || change.Patch != nil {
					t.Fatalf("erase revision %d: got %+v, %v; want it erased", revision, change, err)
				}
				erased[revision] = true
			}
			for revision := int64(2); revision <= 7; revision++ {
				got := p.proved(t, revision)
				if got.leaf != leaves[revision] || got.erased != erased[revision] {
					t.Errorf("revision %d: got the leaf %s, erased: %t; want %s, %t", revision, got.leaf, got.erased,
						leaves[revision], erased[revision])
				}
			}
			p.checkErased(t, erased)
		})
	}
}

// provedRevision has what the proof of one revision shows.
type provedRevision struct {
	leaf   string
	erased bool
}

func (p *prover) proved(t *testing.T, revision int64) provedRevision {
	t.Helper()
	_, evidence, err := p.Prove(t.Context(), p.id, revision)
	expect.Must(t, err, "prove revision %d", revision)
	if evidence.Salt != nil {
		leaf := expect.Get(translog.ParseLeaf(evidence.Leaf))(t)
		expect.Nil(t, leaf.Match(evidence.Asset, *evidence.Salt), "revision %d", revision)
	}
	return provedRevision{string(evidence.Leaf), evidence.Salt == nil}
}

// checkErased checks that the record of each erased revision has no content and no salt. It does not look for the
// erased values in other revisions: a whole asset there may have the same values.
func (p *prover) checkErased(t *testing.T, erased map[int64]bool) {
	t.Helper()
	log := expect.Get(p.store.Log(t.Context(), p.id, registry.LogQuery{Limit: 100, Whole: true}))(t)
	for _, r := range log {
		isErased := erased[r.Revision]
		if isErased && (len(r.Whole) > 0 || bytes.Contains(r.Change, []byte("secret"))) {
			t.Errorf("revision %d: got %q, %d bytes of an asset; want nothing of its content", r.Revision, r.Change, len(r.Whole))
		}
		if _, salt, public, err := r.Leaf(); err != nil || public && (salt == translog.Salt{}) != isErased {
			t.Errorf("revision %d: got the salt %s, %v; want it gone: %t", r.Revision, salt, err, isErased)
		}
	}
}

func TestAnErasureIsRefused(t *testing.T) {
	p := newProver(t)
	p.change(t, `{"status":"pending"}`)
	for _, c := range []struct {
		name     string
		by       identity.Identity
		id       string
		revision int64
		kind     fault.Kind
		place    string
	}{
		{"by the owner", owner, p.id, 1, fault.Forbidden, "url/permission"},
		{"by nobody", identity.Identity{}, p.id, 1, fault.Forbidden, "url/permission"},
		{"of the newest revision", admin, p.id, 2, fault.Invalid, "url/revision"},
		{"of a later revision", admin, p.id, 3, fault.NotFound, "url/revision"},
		{"of no revision", admin, p.id, 0, fault.NotFound, "url/revision"},
		{"of a missing asset", admin, strings.Repeat("0", 32), 1, fault.NotFound, "url/asset_id"},
		{"of a missing asset by the owner", owner, strings.Repeat("0", 32), 1, fault.NotFound, "url/asset_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := p.Erase(t.Context(), c.by, c.id, c.revision)
			if got := strings.Join(places(err), " "); got != c.place || fault.KindOf(err) != c.kind {
				t.Errorf("got %v, want a fault of kind %v at %s", err, c.kind, c.place)
			}
		})
	}
	if got := p.proved(t, 2); got.erased {
		t.Error("got the newest revision erased, want it as it was")
	}
}

// disturbed is a store that calls a function once, before a chosen call of Log.
type disturbed struct {
	registry.Store
	left int // calls of Log until the store calls the function
	do   func()
}

func (d *disturbed) Log(ctx context.Context, id string, q registry.LogQuery) ([]registry.Revision, error) {
	if d.left--; d.left == 0 {
		d.do()
	}
	return d.Store.Log(ctx, id, q)
}

// TestErasuresAtTheSameTimeSucceed erases one revision, and lets another service erase all others between any
// two reads of the first erasure. All erasures must succeed.
func TestErasuresAtTheSameTimeSucceed(t *testing.T) {
	const last = 9
	for call, happened := 1, true; happened; call++ {
		p := newProver(t)
		for i := 2; i <= last; i++ {
			p.change(t, fmt.Sprintf(`{"title":"secret %d"}`, i))
		}
		happened = false
		erased := map[int64]bool{5: true}
		store := &disturbed{Store: p.store, left: call, do: func() {
			happened = true
			for revision := int64(1); revision < last; revision++ {
				erased[revision] = true
				if revision == 5 {
					continue
				}
				expect.NilOf(t, "the other service, revision %d", revision)(p.Erase(t.Context(), admin, p.id, revision))
			}
		}}
		change, err := registry.New(store, p.tokens, plainRules, time.Now).Erase(t.Context(), admin, p.id, 5)
		if err != nil || change.Erased == nil {
			t.Errorf("erasures before reading %d: got %+v, %v; want the revision erased", call, change, err)
		}
		p.checkErased(t, erased)
		expect.FatalIf(t, call > 100, "got over 100 readings for an erasure, want few")
	}
}
