package asset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/testing/expect"
)

// manyParts returns an encoded asset with n parts of each kind, each in three versions where there are versions. Their
// texts look like JSON, and every fifth id begins with the given prefix. The first id of each kind is "0".
func manyParts(n int, prefix string) []byte {
	lists := record.Object{
		{Name: "id", Value: "a"}, {Name: "description", Value: `"items":[{"id":"0"}]`}, {Name: "status", Value: "pending"},
		{Name: "value", Value: record.Object{{Name: "id", Value: "0"}}},
	}
	for _, p := range Parts() {
		list := record.List{}
		for i := range n {
			id := fmt.Sprint(i)
			if i%5 == 1 {
				id = prefix + id
			}
			for version := range 3 {
				list = append(list, record.Object{
					{Name: "id", Value: id}, {Name: "url", Value: fmt.Sprintf("https://docs.example/%d", version%2)},
					{Name: "title", Value: strings.Repeat(`"x\`, 20)},
					{Name: "dateModified", Value: fmt.Sprintf("2026-11-%02dT10:00:00+02:00", 1+(i*7+version)%28)},
				})
				if !p.Versioned() {
					break
				}
			}
		}
		lists = append(lists, record.Member{Name: p.field, Value: list})
	}
	lists = append(lists, record.Member{Name: "owner", Value: "o"}, record.Member{Name: "mode", Value: testMode})
	return record.Append(nil, lists)
}

// TestSelectedPartsAreThoseOfTheAsset reads parts of each kind from a selection and from the whole asset.
func TestSelectedPartsAreThoseOfTheAsset(t *testing.T) {
	body := manyParts(20, `]}"\`)
	whole := expect.Get(Decode(body))(t)
	selected := func(s Selection) Asset {
		t.Helper()
		a, err := Select(body, s)
		if err != nil || a.ID() != "a" || a.Owner() != "o" || a.Status() != Pending || !a.Test() {
			t.Fatalf("%+v: got %v, %v; want the id, status, owner and mode", s, a.fields, err)
		}
		return a
	}
	selected(Selection{})
	for _, p := range Parts() {
		for _, scope := range []Scope{Newest, AllVersions} {
			got, want := selected(Selection{Part: p, Scope: scope}).Parts(p, scope), whole.Parts(p, scope)
			if diff := cmp.Diff(want, got); diff != "" || len(got) < 20 {
				t.Errorf("%s: got %d parts, want 20 or more (-want +got):\n%s", p.Path, len(got), diff)
			}
		}
		for _, id := range []string{"0", "19", `]}"\1`, "20", "x", "\xff"} {
			a := selected(Selection{Part: p, ID: id})
			got, gotErr := a.Part(p, id)
			want, wantErr := whole.Part(p, id)
			if diff := cmp.Diff(want, got); diff != "" || (gotErr == nil) != (wantErr == nil) {
				t.Errorf("%s/%s: got %v, want %v (-want +got):\n%s", p.Path, id, gotErr, wantErr, diff)
			}
			to, gotErr := a.Download(p, id, "/0")
			if from, wantErr := whole.Download(p, id, "/0"); to != from || (gotErr == nil) != (wantErr == nil) {
				t.Errorf("download of %s/%s: got %q, %v; want %q, %v", p.Path, id, to, gotErr, from, wantErr)
			}
		}
	}
}

// TestOnlyTheSelectedPartsAreDecoded selects small parts from assets of several sizes. The allocations must not grow
// with the asset.
func TestOnlyTheSelectedPartsAreDecoded(t *testing.T) {
	bodies := [][]byte{manyParts(10, ""), manyParts(700, ""), manyParts(1400, "")}
	for _, p := range Parts() {
		for _, id := range []string{"0", "no such part"} {
			var counts []float64
			for _, body := range bodies {
				counts = append(counts, testing.AllocsPerRun(3, func() {
					if a, err := Select(body, Selection{Part: p, ID: id}); err != nil || len(a.fields.List(p.field)) > 3 {
						t.Errorf("got %v, %v; want at most three versions", a.fields, err)
					}
				}))
			}
			if slices.Max(counts) > counts[0]+2 || counts[0] > 120 {
				t.Errorf("%s/%s: got %v allocations for three sizes, want equally few", p.Path, id, counts)
			}
		}
	}
}

func TestSelectRefusesWhatIsNoAsset(t *testing.T) {
	for _, body := range []string{
		"", "[]", `{"id":"a"}`, `{"status":"draft"}`, `{"id":}`, `{"id":"a","status":"draft","items":[{"id":"0",]}`,
	} {
		if got, err := Select([]byte(body), Selection{Part: part(t, "items"), ID: "0"}); err == nil {
			t.Errorf("%s: got %v, want an error", body, got.fields)
		}
	}
}
