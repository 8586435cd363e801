package registryctl

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// later is a position after the last leaf of newTestRegistry.
const later = 1790000001000000

func proofPath(asset int, revision int64) string {
	return fmt.Sprintf("/api/2.5/assets/%s/proof?revision=%d", idOf(asset), revision)
}

func TestARegistryIsComparedWithItsLog(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *testRegistry)
		want   registryReport
	}{
		{"nothing changed", func(*testRegistry) {}, registryReport{}},
		{"an asset changed since", func(r *testRegistry) {
			r.set(idOf(4), assetJSON(idOf(4), "", "new", later), true)
		}, registryReport{Changed: 1}},
		{"an asset was withdrawn since", func(r *testRegistry) {
			r.set(idOf(4), assetJSON(idOf(4), `"mode":"test",`, "new", later), false)
		}, registryReport{Changed: 1}},
		{"a withdrawn asset was published since", func(r *testRegistry) {
			r.set(idOf(7), assetJSON(idOf(7), "", "new", later), true)
		}, registryReport{Changed: 1}},
		{"a withdrawn asset changed in test mode", func(r *testRegistry) {
			r.set(idOf(7), assetJSON(idOf(7), `"mode":"test",`, "new", r.changes[290].leaf.Position+1), false)
		}, registryReport{}},
		{"an asset is new", func(r *testRegistry) {
			r.set(idOf(99), assetJSON(idOf(99), "", "new", later), true)
		}, registryReport{}},
		{"revisions are erased", func(r *testRegistry) {
			r.answers[proofPath(0, 42)] = r.erased(40)
			r.answers[proofPath(39, 41)] = r.erased(39)
		}, registryReport{Matched: -2, Erased: []erasedLeaf{{39, idOf(39), 41}, {40, idOf(0), 42}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTestRegistry(t, 0)
			c.change(r)
			c.want.Assets, c.want.Matched = 40, 298+c.want.Matched
			c.want.Erased = append([]erasedLeaf{}, c.want.Erased...)
			got := expect.Get(r.verify(t, "--assets"))(t)
			expect.NoDiff(t, cmp.Diff(&c.want, got.Registry), "the report differs")
		})
	}
}

// Promises: verify-registry
func TestARegistryThatContradictsItsLogIsFound(t *testing.T) {
	fork := newTestRegistry(t, 1)
	for _, c := range []struct {
		name   string
		change func(r *testRegistry)
		want   string
	}{
		{"the newest state has another content", func(r *testRegistry) {
			r.now[idOf(4)] = bytes.Replace(r.now[idOf(4)], []byte("240.50"), []byte("240.5"), 1)
		}, "has another content than its newest leaf, 284"},
		{"the newest state is older", func(r *testRegistry) {
			r.answers["/api/2.5/assets/"+idOf(4)] = `{"data":` + string(r.changes[244].asset) + `}`
		}, "has another dateModified than its newest leaf, 284"},
		{"a withdrawn asset is older", func(r *testRegistry) {
			r.set(idOf(7), assetJSON(idOf(7), `"mode":"test",`, "old", r.changes[287].leaf.Position-1), false)
		}, "has another dateModified than its newest leaf, 287"},
		{"an asset changed without a leaf", func(r *testRegistry) {
			r.set(idOf(4), assetJSON(idOf(4), "", "new", r.changes[299].leaf.Position-1), true)
		}, "is listed with a change at"},
		{"an asset is gone", func(r *testRegistry) {
			r.answers["/api/2.5/assets/"+idOf(4)] = ""
		}, "is gone from the registry"},
		{"an asset is not listed", func(r *testRegistry) { r.set(idOf(4), r.now[idOf(4)], false) }, "is not listed"},
		{"an asset is in test mode", func(r *testRegistry) {
			r.set(idOf(4), assetJSON(idOf(4), `"mode":"test",`, "x", r.changes[284].leaf.Position), false)
		}, "is in test mode"},
		{"an asset without a leaf is listed", func(r *testRegistry) {
			r.set(idOf(99), assetJSON(idOf(99), "", "x", r.changes[100].leaf.Position+1), true)
		}, "is listed and has no leaf"},
		{"the list is out of order", func(r *testRegistry) {
			r.list[3], r.list[4] = r.list[4], r.list[3]
		}, "is listed with dateModified"},
		{"the list has an asset twice", func(r *testRegistry) {
			r.list = slices.Insert(r.list, 20, r.list[19])
		}, "is listed with dateModified"},
		{"a withdrawn asset is listed", func(r *testRegistry) {
			r.set(idOf(7), r.now[idOf(7)], true)
		}, "is a withdraw"},
		{"a withdrawn asset is public", func(r *testRegistry) {
			r.now[idOf(7)] = assetJSON(idOf(7), "", "x", r.changes[287].leaf.Position)
		}, "is not in test mode"},
		{"a past revision has another content", func(r *testRegistry) {
			r.answers[proofPath(1, 43)] = strings.Replace(r.proof(41), "240.50", "240.51", 1)
		}, "leaf 41, revision 43 of asset " + idOf(1) + ": the registry's proof: " + translog.ErrMismatch.Error()},
		{"a past revision is gone", func(r *testRegistry) {
			r.answers[proofPath(1, 43)] = ""
		}, "leaf 41, revision 43 of asset " + idOf(1) + ": "},
		{"a proof is of another leaf", func(r *testRegistry) {
			r.answers[proofPath(1, 43)] = r.proof(42)
		}, "the registry proves another leaf, 42"},
		{"a proof is of a fork", func(r *testRegistry) {
			r.answers[proofPath(1, 43)] = fork.proof(41)
		}, "another tree of the same size"},
		{"a proof is damaged", func(r *testRegistry) {
			r.answers[proofPath(1, 43)] = strings.Replace(r.proof(41), `"path":["`, `"path":["!`, 1)
		}, "the registry's proof: "},
		{"the log is damaged", func(r *testRegistry) {
			r.answers["/log/tile/1/000.p/1"] = strings.Repeat("x", 32)
		}, translog.ErrTampered.Error() + ": tile/1/000.p/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTestRegistry(t, 0)
			c.change(r)
			got, err := r.verify(t, "--assets")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v, want %q", got, err, c.want)
			}
		})
	}
}
