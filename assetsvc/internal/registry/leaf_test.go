package registry_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// newest returns an asset's newest change in the record.
func newest(t *testing.T, store registry.Store, id string) registry.Revision {
	t.Helper()
	log, err := store.Log(t.Context(), id, registry.LogQuery{Limit: 1})
	expect.FatalIf(t, err != nil || len(log) != 1, "got %v, %v; want one change", log, err)
	return log[0]
}

// TestTheLogHasTheChangesOfPublicAssets changes an asset as a draft, in the list, and in test mode. The
// publication, each change of the public asset, and the change into test mode must have a leaf; the other
// changes must have none.
// Promises: log-leaves
func TestTheLogHasTheChangesOfPublicAssets(t *testing.T) {
	r, store, _, id := open(t)
	salts := map[translog.Salt]bool{}
	for _, c := range []struct {
		name, fields string
		want         translog.Kind // "": the change has no leaf
	}{
		{"a draft", `{"title":"a"}`, ""},
		{"a publication", `{"status":"pending"}`, translog.Publish},
		{"a change", `{"title":"b"}`, translog.Change},
		{"a change into test mode", `{"mode":"test"}`, translog.Withdraw},
		{"a change in test mode", `{"title":"c"}`, ""},
		{"a change out of test mode", `{"mode":null}`, translog.Publish},
	} {
		by := owner
		if strings.Contains(c.fields, "mode") {
			by = admin
		}
		changed, err := r.Change(t.Context(), by, id, "token", registry.Input{Fields: parse(t, c.fields)})
		expect.Must(t, err, "%s", c.name)
		leaf, salt, public, err := newest(t, store, id).Leaf()
		if err != nil || public != (c.want != "") || leaf.Kind != c.want {
			t.Fatalf("%s: got leaf %+v, public %v, %v; want kind %q", c.name, leaf, public, err, c.want)
		}
		if !public {
			continue
		}
		if leaf.Asset != id || leaf.Position != changed.Position || leaf.Revision != changed.Revision {
			t.Errorf("%s: got %+v, want the change of %s at %d", c.name, leaf, id, changed.Position)
		}
		if c.want == translog.Withdraw {
			continue
		}
		if got, err := translog.Commit(salt, changed.Body); err != nil || got != leaf.Commitment {
			t.Errorf("%s: got commitment %v, want %v, %v", c.name, leaf.Commitment, got, err)
		}
		expect.ErrorIf(t, salts[salt], "%s: got salt %v again, want a new one", c.name, salt)
		salts[salt] = true
	}
}

// TestALeafIsReadFromEachFormOfAChange reads a leaf that stands before or after the patch, from plain JSON and
// from JSON that another library has compressed.
func TestALeafIsReadFromEachFormOfAChange(t *testing.T) {
	const want = translog.Withdraw
	leaf := fmt.Sprintf(`"leaf":{"kind":%q}`, want)
	patch := `"patch":[{"op":"add","path":"","value":{"leaf":{"kind":"none"}}}]`
	by := `"by":{"broker":"b","key":"leaf","role":"owner"}`
	var packed bytes.Buffer
	packed.WriteByte('z')
	w := expect.Get(flate.NewWriter(&packed, flate.DefaultCompression))(t)
	expect.Get(w.Write([]byte("{" + by + "," + patch + "," + leaf + "}")))(t)
	expect.OK(t, w.Close())
	for _, c := range []struct {
		name, change string
		public, bad  bool
	}{
		{"none", "", false, false},
		{"the patch last", "{" + by + "," + leaf + "," + patch + "}", true, false},
		{"the patch first", "{" + by + "," + patch + "," + leaf + "}", true, false},
		{"the patch first, compressed", packed.String(), true, false},
		{"no leaf", "{" + by + "," + patch + "}", false, false},
		{"cut off", "{" + by + "," + patch, false, true},
		{"cut off, compressed", packed.String()[:packed.Len()/2], false, true},
		{"another encoding", "x", false, true},
		{"a list", "[]", false, true},
	} {
		r := registry.Revision{ID: storetest.NewID(), Revision: 1, Position: 1, Change: []byte(c.change)}
		got, _, public, err := r.Leaf()
		if public != c.public || (err != nil) != c.bad || public && got.Kind != want {
			t.Errorf("%s: got %+v, public %v, %v; want public %v, an error: %v", c.name, got, public, err, c.public, c.bad)
		}
	}
}
