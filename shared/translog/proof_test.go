package translog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/expect"
)

// evidence is the extra data of the golden leaf.
func evidence(t testing.TB) []byte {
	t.Helper()
	salt := goldenSalt()
	asset := `{"dateModified":"2026-09-21T16:13:20.123456+02:00","id":"` + assetID +
		`","quantity":240.50,"title":"Приміщення \"А\"\n"}`
	extra, err := Evidence{Leaf: []byte(goldenLeaf), Salt: &salt, Asset: []byte(asset)}.Encode()
	expect.OK(t, err)
	return extra
}

// proven returns a proof that the golden leaf is at the given index of a log. The argument `size` is the number of
// leaves of the log. The checkpoint has the cosignatures of both witnesses.
func proven(t testing.TB, index, size int64) Proof {
	t.Helper()
	all := leaves(0, size)
	all[index] = []byte(goldenLeaf)
	tree, full, err := Tree{}.Append(all)
	expect.OK(t, err)
	m := memory{parts: map[string][]byte{}}
	for _, part := range append(full, tree.Edge()...) {
		m.parts[part.Tile.Path()] = part.Data
	}
	c := Checkpoint{origin, size, tree.Root()}
	path, err := Include(t.Context(), c, index, m)
	expect.OK(t, err)
	signed, err := Sign(c, logKey(t))
	expect.OK(t, err)
	return Proof{evidence(t), index, path, withLines(t, signed, witnessKey(t, 1), witnessKey(t, 2))}
}

// Promises: proof-file
func TestProofsAreVerifiedOffline(t *testing.T) {
	for _, c := range []struct{ index, size int64 }{
		{0, 1}, {0, 2}, {1, 2}, {255, 256}, {256, 257}, {4, 70000}, {69999, 70000},
	} {
		t.Run(fmt.Sprintf("leaf %d of %d", c.index, c.size), func(t *testing.T) {
			file := proven(t, c.index, c.size).Encode()
			p, err := ParseProof(file)
			expect.OK(t, err)
			if !bytes.Equal(p.Encode(), file) {
				t.Errorf("got %s, want %s", p.Encode(), file)
			}
			leaf, e, signed, err := p.VerifyAsset(twoWitnesses(t))
			expect.OK(t, err)
			if leaf.Revision != 7 || e.Asset == nil || signed.Size != c.size || len(signed.Cosigners) != 2 {
				t.Errorf("got %+v, %s, %+v, want revision 7 in a log of %d", leaf, e.Asset, signed, c.size)
			}
		})
	}
}

func TestEachFlippedByteOfAProofIsFound(t *testing.T) {
	policy := twoWitnesses(t)
	file := proven(t, 100, 300).Encode()
	for i := 0; i < 8*len(file); i += 5 {
		damaged := bytes.Clone(file)
		damaged[i/8] ^= 1 << (i % 8)
		p, err := ParseProof(damaged)
		if err == nil {
			_, _, _, err = p.VerifyAsset(policy)
		}
		expect.ErrorIf(t, err == nil,
			"got no error with bit %d of byte %d flipped, want one:\n%s\n%s", i%8, i/8, damaged, p.Extra)
	}
}

func TestAProofWithoutTheAssetProvesTheLeaf(t *testing.T) {
	p := proven(t, 1, 3)
	p.Extra = []byte(`{"leaf":` + goldenLeaf + `}`)
	leaf, e, _, err := p.VerifyAsset(twoWitnesses(t))
	expect.ErrorIf(t, err != nil || leaf.Revision != 7 || e.Asset != nil || e.Salt != nil,
		"got %+v, %+v, %v, want revision 7 without an asset", leaf, e, err)
}

func TestVerifyAssetRefuses(t *testing.T) {
	salt := strings.Repeat("00", 32)
	asset := `{"id":"` + assetID + `"}`
	for _, c := range []struct {
		name, extra string
		want        error
	}{
		{"nothing", ``, ErrProof},
		{"an unknown member", `{"leaf":` + goldenLeaf + `,"x":1}`, ErrProof},
		{"a member in capitals", `{"Leaf":` + goldenLeaf + `}`, ErrProof},
		{"no leaf", `{}`, ErrLeaf},
		{"another leaf", `{"leaf":` + goldenWithdraw + `}`, ErrIncluded},
		{"a salt alone", `{"leaf":` + goldenLeaf + `,"salt":"` + salt + `"}`, ErrProof},
		{"an asset alone", `{"leaf":` + goldenLeaf + `,"asset":` + asset + `}`, ErrProof},
		{"another asset", `{"leaf":` + goldenLeaf + `,"salt":"` + salt + `","asset":` + asset + `}`, ErrMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := proven(t, 1, 3)
			p.Extra = []byte(c.extra)
			if _, _, _, err := p.VerifyAsset(twoWitnesses(t)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// Promises: proof-path
func TestParseProofRefuses(t *testing.T) {
	good := string(proven(t, 1, 3).Encode())
	extra := "extra " + base64.StdEncoding.EncodeToString(evidence(t)) + "\n"
	change := func(old, new string) string {
		expect.FatalIf(t, !strings.Contains(good, old), "the proof has no %q", old)
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ name, file string }{
		{"nothing", ""},
		{"another version", change("@v1", "@v2")},
		{"no index", change("index 1\n", "")},
		{"an index with a zero", change("index 1", "index 01")},
		{"a negative index", change("index 1", "index -1")},
		{"extra after the index", strings.Replace(change(extra, ""), "index 1\n", "index 1\n"+extra, 1)},
		{"two extra lines", change(extra, extra+extra)},
		{"extra that is not base64", change("extra ", "extra !")},
		{"a carriage return in extra", change(extra, strings.TrimSuffix(extra, "\n")+"\r\n")},
		{"a malformed hash", change("index 1\n", "index 1\nx\n")},
		{"too many hashes", change("index 1\n", "index 1\n"+strings.Repeat(goldenRoot+"\n", 64))},
		{"no checkpoint", strings.Split(good, "\n\n")[0] + "\n"},
		{"no end of the hashes", strings.Split(good, "\n\n")[0]},
		{"nothing after the first line", proofHeader + "\n\nx"},
		{"a long file", good + strings.Repeat("x", MaxProof)},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.ErrOf(t, ErrProof, "")(ParseProof([]byte(c.file)))
		})
	}
	p, err := ParseProof([]byte(change(extra, "")))
	expect.OK(t, err)
	expect.NoDiff(t, cmp.Diff(Proof{nil, 1, proven(t, 1, 3).Path, proven(t, 1, 3).Checkpoint}, p),
		"the proof without extra data differs")
}

func TestConsistencyBetweenAllSizes(t *testing.T) {
	var checkpoints []Checkpoint
	logs := []memory{}
	sizes := []int64{0, 1, 2, 3, 255, 256, 257, 600, 65536, 65800}
	for _, size := range sizes {
		tree, m := grow(t, size, 5000)
		checkpoints = append(checkpoints, Checkpoint{origin, size, tree.Root()})
		logs = append(logs, m)
	}
	for i, newer := range checkpoints {
		for _, older := range checkpoints[:i+1] {
			proof, err := Consistent(t.Context(), older.Size, newer, logs[i])
			expect.OK(t, err)
			if err := CheckConsistency(older, newer, proof); err != nil {
				t.Errorf("got %v from %d to %d, want none", err, older.Size, newer.Size)
			}
			if older.Size == 0 {
				continue
			}
			other := older
			other.Root[0]++
			if err := CheckConsistency(other, newer, proof); !errors.Is(err, ErrConsistency) {
				t.Errorf("got %v of a fork of size %d, want %v", err, older.Size, ErrConsistency)
			}
			for n := range proof {
				proof[n][n%32] ^= 1
				if err := CheckConsistency(older, newer, proof); !errors.Is(err, ErrConsistency) {
					t.Errorf("got %v with hash %d flipped, want %v", err, n, ErrConsistency)
				}
				proof[n][n%32] ^= 1
			}
		}
	}
}

func TestCheckConsistencyRefuses(t *testing.T) {
	a := Checkpoint{origin, 3, goldenTree(t).Root()}
	other := Checkpoint{"other.example/log", 3, a.Root}
	huge := Checkpoint{origin, 1 << 62, a.Root}
	for _, c := range []struct {
		name         string
		older, newer Checkpoint
		proof        []tlog.Hash
	}{
		{"another origin", other, a, nil},
		{"a shorter log", a, Checkpoint{origin, 2, a.Root}, nil},
		{"a proof of the same size", a, a, []tlog.Hash{a.Root}},
		{"no proof", a, Checkpoint{origin, 4, a.Root}, nil},
		{"a proof from the empty log", Checkpoint{Origin: origin}, a, []tlog.Hash{a.Root}},
		{"a size without end", a, huge, nil},
		{"too many hashes", a, Checkpoint{origin, 4, a.Root}, make([]tlog.Hash, 64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Err(t, CheckConsistency(c.older, c.newer, c.proof), ErrConsistency, "")
		})
	}
}

// TestProofsAreNotMadeOfDamagedTiles damages tiles, or takes them away. A proof that needs such a tile must not be made.
// Only damage may have the cause ErrPart.
func TestProofsAreNotMadeOfDamagedTiles(t *testing.T) {
	tree, m := grow(t, 700, 700)
	c := Checkpoint{origin, 700, tree.Root()}
	proofs := map[string]func() error{
		"of a leaf":          func() error { _, err := Include(t.Context(), c, 3, m); return err },
		"from an older tree": func() error { _, err := Consistent(t.Context(), 3, c, m); return err },
	}
	for _, path := range []string{"tile/0/000", "tile/0/002.p/188", "tile/1/000.p/2"} {
		part := m.parts[path]
		for name, prove := range proofs {
			part[5] ^= 1
			expect.Err(t, prove(), ErrPart, "a proof %s, with %s damaged", name, path)
			part[5] ^= 1
			delete(m.parts, path)
			if err := prove(); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrPart) {
				t.Errorf("a proof %s, without %s: got %v, want that it does not exist", name, path, err)
			}
			m.parts[path] = part
		}
	}
	for _, index := range []int64{-1, 700} {
		if _, err := Include(t.Context(), c, index, m); err == nil {
			t.Errorf("got a proof of leaf %d of 700, want an error", index)
		}
	}
	for _, older := range []int64{-1, 701} {
		if _, err := Consistent(t.Context(), older, c, m); err == nil {
			t.Errorf("got a proof from size %d to 700, want an error", older)
		}
	}
}

func FuzzParseProof(f *testing.F) {
	f.Add(proven(f, 1, 3).Encode())
	f.Add(proven(f, 0, 1).Encode())
	policy := twoWitnesses(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := ParseProof(file)
		if err != nil {
			return
		}
		if len(p.Extra) > 0 && !bytes.Equal(p.Encode(), file) {
			t.Errorf("got %q of %q, want the same", p.Encode(), file)
		}
		if leaf, _, _, err := p.VerifyAsset(policy); err == nil && leaf.Revision != 7 {
			t.Errorf("got %+v, which is in no log", leaf)
		}
	})
}
