package translog

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/expect"
)

const (
	assetID = "0123456789abcdef0123456789abcdef"
	// Another implementation computed these values from docs/log.md.
	goldenCommitment = "37d5259d2645eaaa79ee5414ad76b4f666f96cba07c298ca25c91734db0c2535"
	goldenLeaf       = `{"asset":"` + assetID + `","commitment":"` + goldenCommitment +
		`","kind":"change","position":1790000000123456,"revision":7,"v":1}`
	goldenLeafHash = "2VmCWoZ3MNkOiX7SbeWOxz1plfVBdnbdp2ielKkNJAM="
	goldenWithdraw = `{"asset":"` + assetID + `","kind":"withdraw","position":1790000000123456,"revision":8,"v":1}`
	goldenAsset    = `{ "title":"\u041f\u0440иміщення \"А\"\n" , "dateModified":"2026-09-21T16:13:20.123456+02:00",
		"quantity":240.50, "id":"` + assetID + `"}`
)

// goldenSalt is the bytes 0 to 31.
func goldenSalt() Salt {
	var s Salt
	for i := range s {
		s[i] = byte(i)
	}
	return s
}

func TestALeafHasOneForm(t *testing.T) {
	commitment, err := parseCommitment(goldenCommitment)
	expect.OK(t, err)
	for _, c := range []struct {
		name string
		leaf Leaf
		want string
	}{
		{"a change", Leaf{1790000000123456, assetID, 7, Change, commitment}, goldenLeaf},
		{"a withdrawal", Leaf{1790000000123456, assetID, 8, Withdraw, Commitment{}}, goldenWithdraw},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, string(c.leaf.Encode()), c.want, "")
			got, err := ParseLeaf([]byte(c.want))
			expect.OK(t, err)
			expect.NoDiff(t, cmp.Diff(c.leaf, got), "the leaf")
		})
	}
	expect.Equal(t, tlog.RecordHash([]byte(goldenLeaf)).String(), goldenLeafHash, "the leaf's hash")
}

// Promises: leaf-form
func TestParseLeafRefuses(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(goldenLeaf, old, new, 1) }
	for _, c := range []struct{ name, leaf string }{
		{"nothing", ""},
		{"a list", "[1]"},
		{"a blank", goldenLeaf + " "},
		{"a second object", goldenLeaf + goldenLeaf},
		{"another order", `{"v":1,` + strings.TrimSuffix(goldenLeaf[1:], `,"v":1}`) + "}"},
		{"an unknown member", change(`"v":1`, `"v":1,"w":1`)},
		{"a repeated member", change(`"v":1`, `"v":1,"v":1`)},
		{"another version", change(`"v":1`, `"v":2`)},
		{"no version", change(`,"v":1`, ``)},
		{"an escape", change(`change`, `ch\u0061nge`)},
		{"a number as text", change(`1790000000123456`, `"1790000000123456"`)},
		{"a fraction", change(`1790000000123456`, `1790000000123456.0`)},
		{"position 0", change(`1790000000123456`, `0`)},
		{"a position after the year 9999", change(`1790000000123456`, `253402300800000000`)},
		{"revision 0", change(`"revision":7`, `"revision":0`)},
		{"an unknown kind", change(`change`, `delete`)},
		{"a short id", change(assetID, assetID[1:])},
		{"an id in capitals", change(assetID, strings.ToUpper(assetID))},
		{"a short commitment", change(goldenCommitment, goldenCommitment[2:])},
		{"a commitment in capitals", change(goldenCommitment, strings.ToUpper(goldenCommitment))},
		{"a commitment of zeroes", change(goldenCommitment, strings.Repeat("0", 64))},
		{"a change without a commitment", change(`"commitment":"`+goldenCommitment+`",`, ``)},
		{"a withdrawal with a commitment", change(`change`, `withdraw`)},
		{"an object in place of a value", change(`7`, `{}`)},
		{"a text without an end", goldenLeaf[:len(goldenLeaf)-1]},
		{"a long text", goldenLeaf + strings.Repeat(" ", MaxLeaf)},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.ErrOf(t, ErrLeaf, "")(ParseLeaf([]byte(c.leaf)))
		})
	}
}

func FuzzParseLeaf(f *testing.F) {
	f.Add([]byte(goldenLeaf))
	f.Add([]byte(goldenWithdraw))
	f.Fuzz(func(t *testing.T, entry []byte) {
		leaf, err := ParseLeaf(entry)
		if err == nil && !bytes.Equal(leaf.Encode(), entry) {
			t.Errorf("got %s of %s, want the same", leaf.Encode(), entry)
		}
	})
}
