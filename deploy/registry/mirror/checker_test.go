package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry.example/client"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// checked is a copy with its public log and its origin, for tests of a checker.
type checked struct {
	*checker
	entries []replica.Entry
	leaves  map[int64]translog.Leaf // by position
	proofs  map[string]client.Proof // by id
	asked   int                     // number of proofs that were asked for
	away    bool
	found   map[outcome]int
}

// From implements the copy that a checker reads.
func (c *checked) From(id string, visit func(replica.Entry) bool) error {
	for _, e := range c.entries {
		if e.ID >= id && !visit(e) {
			break
		}
	}
	return nil
}

// idOf returns the id of asset n; ids are in the order of n.
func idOf(n int) string { return fmt.Sprintf("%032x", 16*n+1) }

// newChecked returns a copy with this number of assets.
func newChecked(t *testing.T, assets int) *checked {
	t.Helper()
	c := &checked{leaves: map[int64]translog.Leaf{}, proofs: map[string]client.Proof{}, found: map[outcome]int{}}
	for n := range assets {
		c.put(t, idOf(n), int64(n+1))
	}
	c.checker = &checker{
		copied: c, log: slog.New(slog.DiscardHandler), count: func(o outcome) { c.found[o]++ },
		leaf: func(_ context.Context, at int64) (translog.Leaf, error) {
			if leaf, there := c.leaves[at]; there {
				return leaf, nil
			}
			return translog.Leaf{}, errors.New("no leaf")
		},
		prove: func(_ context.Context, id string, _ int64) (client.Proof, error) {
			c.asked++
			if proof, there := c.proofs[id]; there {
				return proof, nil
			}
			return client.Proof{}, errors.New("there is no proof")
		},
		isAway: func() bool { return c.away },
	}
	return c
}

// put puts an asset at a position into the copy, the log and the origin.
func (c *checked) put(t *testing.T, id string, position int64) {
	t.Helper()
	at := time.UnixMicro(position).UTC().Format("2006-01-02T15:04:05.000000-07:00")
	text := fmt.Appendf(nil, `{"id":%q,"dateModified":%q,"title":"x"}`, id, at)
	salt := translog.NewSalt()
	commitment := expect.Get(translog.Commit(salt, text))(t)
	c.leaves[position] = translog.Leaf{
		Kind: translog.Change, Asset: id, Position: position, Revision: 2, Commitment: commitment,
	}
	c.proofs[id] = client.Proof{Salt: salt.String(), Asset: json.RawMessage(text)}
	e := replica.Entry{ID: id, Position: position, JSON: text}
	at2 := slices.IndexFunc(c.entries, func(e replica.Entry) bool { return e.ID == id })
	if at2 < 0 {
		c.entries = append(c.entries, e)
		return
	}
	c.entries[at2] = e
}

// forge changes the text of asset n in the copy only.
func (c *checked) forge(n int) {
	c.entries[n].JSON = []byte(string(c.entries[n].JSON[:len(c.entries[n].JSON)-3]) + `y"}`)
}

func (c *checked) steps(t *testing.T, count int) {
	t.Helper()
	for range count {
		c.step(t.Context())
	}
}

func TestOneAssetAfterTheOtherIsCompared(t *testing.T) {
	c := newChecked(t, 10)
	c.entries[3].Test = true
	c.next = idOf(5)
	c.steps(t, 10) // one step finds the end, and the next one begins again at the first asset
	if diff := cmp.Diff(map[outcome]int{matches: 9}, c.found); diff != "" || c.asked != 9 {
		t.Errorf("got %d proofs, want 9; outcomes (-want +got):\n%s", c.asked, diff)
	}
}

func TestAForgedAssetDiffersUntilItIsRight(t *testing.T) {
	c := newChecked(t, 3)
	c.forge(1)
	c.steps(t, 6)
	if c.differing() != 1 || c.found[differs] < 2 {
		t.Fatalf("got %d that differ, outcomes %v; want 1, which was looked at again", c.differing(), c.found)
	}
	proofs := c.proofs
	c.proofs = map[string]client.Proof{}
	c.steps(t, 6)
	expect.Equal(t, c.differing(), 1, "without a proof, that differ")
	c.proofs = proofs
	c.put(t, idOf(1), 100)
	c.steps(t, 1)
	expect.Equal(t, c.differing(), 0, "after a change of the asset, that differ")
}

func TestOnlyAProvenContentCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*checked)
		want   outcome
	}{
		{"the origin is away", func(c *checked) { c.away = true; delete(c.proofs, idOf(0)) }, unsettled},
		{"the log does not have the change", func(c *checked) { delete(c.leaves, 1) }, unsettled},
		{"the leaf is one of another asset", func(c *checked) { c.leaves[1] = c.leaves[2] }, unsettled},
		{"the origin refuses the proof", func(c *checked) { delete(c.proofs, idOf(0)) }, refused},
		{"the proof has no salt", func(c *checked) { c.proofs[idOf(0)] = client.Proof{} }, refused},
		{"the salt is malformed", func(c *checked) { c.proofs[idOf(0)] = client.Proof{Salt: "x"} }, refused},
		{"the origin has another salt", func(c *checked) { c.proofs[idOf(0)] = c.proofs[idOf(1)] }, refused},
	} {
		checked := newChecked(t, 2)
		checked.forge(0)
		c.change(checked)
		checked.look(t.Context(), idOf(0))
		if diff := cmp.Diff(map[outcome]int{c.want: 1}, checked.found); diff != "" || checked.differing() != 0 {
			t.Errorf("%s: got %d that differ, want none; outcomes (-want +got):\n%s", c.name, checked.differing(), diff)
		}
	}
}

// TestRefusedProofsCount has an origin that refuses the salts of 1, 3 or 50 assets. Each repeated refusal must count,
// so that even one asset reaches the limit mostRefused.
// Promises: mirror-refusals
func TestRefusedProofsCount(t *testing.T) {
	for _, without := range []int{1, 3, 50} {
		c := newChecked(t, 50)
		proofs := maps.Clone(c.proofs)
		for n := range without {
			c.forge(n)
			delete(c.proofs, idOf(n))
		}
		c.steps(t, 2*mostRefused)
		if got := c.refused(); got < mostRefused || len(c.unproven) > mostRefused {
			t.Errorf("%d assets without a salt: got %d refusals, want %d or more", without, got, mostRefused)
		}
		c.proofs = proofs
		c.steps(t, 100)
		if c.refused() != 0 || c.differing() != without {
			t.Errorf("%d assets with a salt again: got %d refusals and %d that differ, want 0 and %d", without, c.refused(),
				c.differing(), without)
		}
	}
}

func TestARefusedProofOfAChangedAssetCountsNoMore(t *testing.T) {
	c := newChecked(t, 1)
	delete(c.proofs, idOf(0))
	c.steps(t, 2)
	expect.FatalIf(t, c.refused() == 0, "got no refusals, want some")
	c.put(t, idOf(0), 100)
	c.steps(t, 1)
	expect.Equal(t, c.refused(), 0, "refusals")
}

// TestTheCheckIsBounded checks a copy in which every asset differs, and a copy with only test assets. The list
// of differing assets and the number of proofs must stay bounded.
func TestTheCheckIsBounded(t *testing.T) {
	c := newChecked(t, 3*mostWrong)
	for n := range c.entries {
		c.forge(n)
	}
	c.steps(t, 3*mostWrong)
	if c.differing() != mostWrong || c.asked > 6*mostWrong {
		t.Errorf("got %d that differ and %d proofs, want %d and at most two a step", c.differing(), c.asked, mostWrong)
	}
	c = newChecked(t, 2*mostSkipped)
	for n := range c.entries {
		c.entries[n].Test = true
	}
	c.steps(t, 1)
	if want := after(idOf(mostSkipped - 1)); c.asked != 0 || c.next != want {
		t.Errorf("test assets only: got %d proofs and the next id %s, want none and %s", c.asked, c.next, want)
	}
}

func TestTheIDAfterAnother(t *testing.T) {
	for _, c := range []struct{ id, want string }{{"", ""}, {"00", "01"}, {"00ff", "0100"}, {"ffff", ""}, {"x", ""}} {
		expect.Equal(t, after(c.id), c.want, "%q", c.id)
	}
}
