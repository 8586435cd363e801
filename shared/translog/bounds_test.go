package translog

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/expect"
)

// filler returns a signature line of the given size in bytes. The line names an unknown key.
func filler(size int, raw []byte) string {
	line := "— " + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
	return strings.Replace(line, "— ", "— "+strings.Repeat("x", size-len(line)), 1)
}

func TestInputIsTakenUpToItsBound(t *testing.T) {
	proof, hash := string(proven(t, 1, 3).Encode()), goldenRoot+"\n"
	hashes := func(n int) string { return strings.Repeat(hash, n) }
	for _, c := range []struct {
		name      string
		parse     func(text string) error
		good, bad string
		want      error // the error that the function `parse` must return for the text in the field `bad`
	}{
		{"a checkpoint", func(text string) error { _, err := Unverified([]byte(text)); return err },
			goldenCheckpoint + filler(MaxCheckpoint-len(goldenCheckpoint), make([]byte, 5)),
			goldenCheckpoint + filler(MaxCheckpoint+1-len(goldenCheckpoint), make([]byte, 5)), ErrCheckpoint},
		{"a signature", func(text string) error { _, err := Unverified([]byte(text)); return err },
			goldenCheckpoint + filler(30, make([]byte, 5)), goldenCheckpoint + filler(30, make([]byte, 4)), ErrCheckpoint},
		{"the end of a checkpoint", func(text string) error { _, err := parseText(text); return err },
			goldenText + "more\n", goldenText + "more", ErrCheckpoint},
		{"a proof", func(text string) error { _, err := ParseProof([]byte(text)); return err },
			proof + strings.Repeat("x", MaxProof-len(proof)), proof + strings.Repeat("x", MaxProof+1-len(proof)), ErrProof},
		{"the hashes of a proof", func(text string) error { _, err := ParseProof([]byte(text)); return err },
			proofHeader + "\nindex 0\n" + hashes(63) + "\nx", proofHeader + "\nindex 0\n" + hashes(64) + "\nx", ErrProof},
		{"a size", func(text string) error { _, err := parseSize(text); return err },
			"1152921504606846976", "1152921504606846977", errMalformedNumber},
		{"a hash", func(text string) error { _, err := parseHash(text); return err },
			goldenRoot, goldenRoot + "\r", errMalformedHash},
	} {
		expect.Err(t, c.parse(c.good), nil, "%s up to its bound", c.name)
		expect.Err(t, c.parse(c.bad), c.want, "%s beyond its bound", c.name)
	}
}

func TestALeafHasBounds(t *testing.T) {
	good := Leaf{1, assetID, 1, Change, Commitment{1}}
	last, withdrawn := good, Leaf{1, assetID, 1, Withdraw, Commitment{}}
	last.Position = maxPosition
	for _, l := range []Leaf{good, last, withdrawn} {
		expect.Err(t, l.Check(), nil, "%+v", l)
	}
	early, late, both := good, good, withdrawn
	early.Position, late.Position, both.Commitment = 0, maxPosition+1, good.Commitment
	for _, l := range []Leaf{early, late, both} {
		expect.Err(t, l.Check(), ErrLeaf, "%+v", l)
	}
}

func TestKeysAreMadeOfWhatTheyMayHave(t *testing.T) {
	for _, c := range []struct {
		use  Use
		name string
		seed int
	}{
		{ForLog, "", 32}, {ForLog, "a b", 32}, {ForLog, "a+b", 32}, {ForLog, "a\x01", 32}, {ForLog, "\xff", 32},
		{ForLog, "a\u00a0b", 32}, {0x02, "a", 32}, {ForLog, "a", 31}, {ForWitness, "a", 33},
	} {
		if got, err := NewKey(c.use, c.name, make([]byte, c.seed)); !errors.Is(err, ErrKey) {
			t.Errorf("%+v: got %s, %v; want %v", c, got.Public(), err, ErrKey)
		}
	}
	for _, text := range []string{strings.TrimPrefix(goldenSecret, secretPrefix), "x+00000000+"} {
		expect.ErrOf(t, ErrKey, "%q as a secret key", text)(ParseKey(text))
	}
	expect.ErrOf(t, ErrKey, "a key without bytes")(ParsePublicKey("x+00000000+"))
}

func TestTimesOfCosignaturesHaveBounds(t *testing.T) {
	key := witnessKey(t, 1)
	for stamp, ok := range map[uint64]bool{math.MaxInt64: true, math.MaxInt64 + 1: false} {
		signature := binary.BigEndian.AppendUint64(nil, stamp)
		signature = append(signature, ed25519.Sign(key.private, cosigned(stamp, []byte("x")))...)
		expect.Equal(t, key.Public().Verify([]byte("x"), signature), ok, "time %d: verified", stamp)
	}
	expect.ErrorIf(t, key.Public().Verify([]byte("x"), make([]byte, 5)), "a short signature: got verified, want not")
	for stamp, ok := range map[uint64]bool{latest: true, latest + 1: false} {
		raw := binary.BigEndian.AppendUint64(make([]byte, 4), stamp)
		signers, err := Signers([]byte(goldenText + "\n" + filler(130, append(raw, make([]byte, 64)...))))
		expect.ErrorIf(t, err != nil || len(signers) != 1 || signers[0].At.IsZero() == ok,
			"time %d: got %v, %v; want its time: %v", stamp, signers, err, ok)
	}
	expect.ErrOf(t, ErrCheckpoint, "a cosignature of no checkpoint")(Cosignature([]byte("x"),
		[]byte(goldenCosignature), key.Public()))
}

func TestSaltsAndCommitmentsHaveOneForm(t *testing.T) {
	for _, text := range []string{
		"", strings.Repeat("A", 64), strings.Repeat("a", 63), strings.Repeat("a", 66), strings.Repeat("g", 64),
	} {
		var s Salt
		var c Commitment
		expect.ErrorIf(t, s.UnmarshalText([]byte(text)) == nil || c.UnmarshalText([]byte(text)) == nil,
			"%q: got a salt or a commitment, want errors", text)
	}
	var c Commitment
	want := strings.Repeat("0a", 32)
	if err := c.UnmarshalText([]byte(want)); err != nil || c.String() != want {
		t.Errorf("got %s, %v; want %s", c, err, want)
	}
	expect.ErrOf(t, ErrAsset, "a commitment to a list")(Commit(Salt{}, []byte("[]")))
}

func TestPartsAreCutAtEntries(t *testing.T) {
	bundle := []byte("\x00\x01a\x00\x00") // an entry, and an empty one at the end
	if got, err := (Tile{Entries, 0, 2}).Cut(bundle); err != nil || !bytes.Equal(got, bundle) {
		t.Errorf("a whole bundle: got %q, %v; want it", got, err)
	}
	if got, err := ParseBundle(bundle, 2); err != nil || len(got) != 2 {
		t.Errorf("a bundle with an empty entry: got %d entries, %v; want 2", len(got), err)
	}
	expect.ErrOf(t, ErrPart, "a bundle of two of three entries")((Tile{Entries, 0, 3}).Cut(bundle))
	expect.ErrOf(t, ErrPart, "a tile without its last byte")((Tile{0, 0, 2}).Cut(make([]byte, 63)))
	if text := string(Proof{Checkpoint: []byte(goldenCheckpoint)}.Encode()); strings.Contains(text, "extra") {
		t.Errorf("a proof without extra data: got %s, want no such line", text)
	}
}

func TestATreeHasABoundedSize(t *testing.T) {
	for size, ok := range map[int64]bool{MaxSize - 1: true, MaxSize: false} {
		got, _, err := Tree{size: size}.Append([][]byte{{}})
		if (err == nil) != ok || got.Size() != MaxSize {
			t.Errorf("one leaf after %d: got size %d, %v; want it: %v", size, got.Size(), err, ok)
		}
	}
	tree := goldenTree(t)
	if got, _, err := tree.Append([][]byte{make([]byte, 1<<16)}); !errors.Is(err, ErrPart) || got.Size() != 3 {
		t.Errorf("a leaf that is too long: got size %d, %v; want the tree as it was, and %v", got.Size(), err, ErrPart)
	}
	largest := append(binary.BigEndian.AppendUint64(nil, uint64(MaxSize)), make([]byte, 16*tlog.HashSize)...)
	if err := tree.UnmarshalBinary(largest); err != nil || tree.Size() != MaxSize {
		t.Errorf("the largest tree: got size %d, %v; want it", tree.Size(), err)
	}
	larger := append(binary.BigEndian.AppendUint64(nil, 2*uint64(MaxSize)), make([]byte, 32*tlog.HashSize)...)
	for _, data := range [][]byte{nil, largest[:7], larger} {
		expect.Err(t, tree.UnmarshalBinary(data), ErrTree, "%x", data)
	}
	c := Checkpoint{origin, MaxSize + 1, goldenTree(t).Root()}
	expect.Err(t, CheckInclusion(c, 0, tlog.Hash{}, nil), ErrIncluded, "inclusion in a log that is too large")
	_, including := Include(t.Context(), c, 0, memory{})
	_, continuing := Consistent(t.Context(), 1, c, memory{})
	for _, err := range []error{including, continuing} {
		expect.ErrorIf(t, err == nil || errors.Is(err, fs.ErrNotExist),
			"a proof of a log that is too large: got %v, want an error before the first reading", err)
	}
}

func TestALogThatIsNotItsCheckpointIsFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		size  int64
		spoil func(m *memory)
		want  error
	}{
		{"another tile of level 1", 1 << 16, func(m *memory) {
			m.parts["tile/1/000"] = bytes.Repeat([]byte("x"), len(m.parts["tile/1/000"]))
		}, ErrTampered},
		{"a malformed bundle", 600, func(m *memory) { m.parts["tile/entries/001"] = []byte("x") }, ErrPart},
		{"another root", 600, func(m *memory) {
			m.checkpoint = mustSign(t, Checkpoint{origin, 600, tlog.Hash{1}})
		}, ErrTampered},
		{"no checkpoint", 600, func(m *memory) { m.checkpoint = []byte("x") }, ErrCheckpoint},
	} {
		_, m := signedLog(t, c.size)
		c.spoil(&m)
		expect.ErrOf(t, c.want, "%s", c.name)(verifier(t).Verify(t.Context(), m))
	}
	broken := errors.New("broken")
	expect.ErrOf(t, broken, "a log without an answer")(verifier(t).Verify(t.Context(), silent{memory{}, broken}))
	tree, small := grow(t, 300, 300)
	delete(small.parts, "tile/0/000")
	expect.ErrOf(t, fs.ErrNotExist, "a proof without a tile")(Include(t.Context(), Checkpoint{origin, 300,
		tree.Root()}, 0, small))
}

// silent is a log whose checkpoint cannot be read.
type silent struct {
	memory
	err error
}

func (s silent) ReadCheckpoint(context.Context) ([]byte, error) { return nil, s.err }

func mustSign(t *testing.T, c Checkpoint) []byte {
	t.Helper()
	signed, err := Sign(c, logKey(t))
	expect.OK(t, err)
	return signed
}
