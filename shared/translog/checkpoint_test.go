package translog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/cosign"
	"asset-registry/shared/testing/expect"
)

// Another implementation computed these values from the specifications of C2SP: the
// checkpoint of the leaves "a", "b" and "c", and a cosignature of it.
const (
	goldenRoot      = "NmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE="
	goldenText      = origin + "\n3\n" + goldenRoot + "\n"
	goldenSignature = "— registry.example/log " +
		"lSvF56F0OvXARNnZfoCVND5m1116x+bs93qIzTgj5NcwkC1GwCXLC7VzC+wYKLeFQI5EaPplF7Q03s1RTjZCE3WwBgM=\n"
	goldenCosignature = "— witness.example/w1 " +
		"IDJKvgAAAABqsTuA6NiFCzHeV1FHehZp35Pf4sNbq/XEaVSyX3TwbGP6jKjd+iBOF0OrTvyIWZqAPGXrnZVK3oiXzGZqn//ontLeCQ==\n"
	goldenCheckpoint = goldenText + "\n" + goldenSignature
)

var cosignedAt = time.Unix(1790000000, 0)

func goldenTree(t testing.TB) Tree {
	t.Helper()
	tree, _, err := Tree{}.Append([][]byte{[]byte("a"), []byte("b"), []byte("c")})
	expect.OK(t, err)
	return tree
}

// Promises: checkpoint-form
func TestCheckpointsAreSignedAsSpecified(t *testing.T) {
	c := Checkpoint{origin, 3, goldenTree(t).Root()}
	got, err := Sign(c, logKey(t))
	expect.FatalIf(t, err != nil || string(got) != goldenCheckpoint, "got %s, %v, want %s", got, err, goldenCheckpoint)
	line := cosign.Line(got, witnessKey(t, 1).Secret(), cosignedAt)
	expect.Equal(t, string(line), goldenCosignature, "the cosignature of the tests")
	expect.Value(t, c, "")(parseText(goldenText))
	if read, err := Unverified(got); err != nil || read.Origin != origin {
		t.Errorf("got the origin %q, %v, want %q", read.Origin, err, origin)
	}
}

func TestOnlyTheKeysOfALogSignItsCheckpoints(t *testing.T) {
	c := Checkpoint{Origin: origin}
	for _, c := range []struct {
		name       string
		checkpoint Checkpoint
		key        Key
		want       error
	}{
		{"a witness", c, seeded(t, ForWitness, origin, 0), ErrKey},
		{"another log", c, seeded(t, ForLog, "other.example/log", 0), ErrKey},
		{"a negative size", Checkpoint{Origin: origin, Size: -1}, logKey(t), ErrCheckpoint},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.ErrOf(t, c.want, "")(Sign(c.checkpoint, c.key))
		})
	}
}

func TestParseTextRefuses(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"nothing", ""},
		{"two lines", origin + "\n3\n"},
		{"no end", strings.TrimSuffix(goldenText, "\n")},
		{"no origin", strings.TrimPrefix(goldenText, origin)},
		{"a leading zero", strings.Replace(goldenText, "\n3\n", "\n03\n", 1)},
		{"a sign", strings.Replace(goldenText, "\n3\n", "\n+3\n", 1)},
		{"a size that is too large", strings.Replace(goldenText, "\n3\n", "\n1152921504606846977\n", 1)},
		{"a short root", strings.Replace(goldenText, "NmQu", "", 1)},
		{"a root with stray bits", strings.Replace(goldenText, "HsE=", "HsF=", 1)},
		{"an empty line", goldenText + "\n"},
		{"an empty line before an extension", goldenText + "\nextension\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.ErrOf(t, ErrCheckpoint, "")(parseText(c.text))
		})
	}
	if got, err := parseText(goldenText + "extension\n"); err != nil || got.Size != 3 {
		t.Errorf("got %+v, %v with an extension line, want size 3", got, err)
	}
}

// twoWitnesses is a policy that needs both witnesses.
func twoWitnesses(t testing.TB) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte("log " + goldenPublic + "\nwitness a " + goldenWitness + "\nwitness b " +
		witnessKey(t, 2).Public().String() + "\ngroup both all a b\nquorum both\n"))
	expect.OK(t, err)
	return p
}

// withLines appends cosignatures of witnesses to a checkpoint.
func withLines(t testing.TB, checkpoint []byte, witnesses ...Key) []byte {
	t.Helper()
	signed := bytes.Clone(checkpoint)
	for _, key := range witnesses {
		signed = append(signed, cosign.Line(checkpoint, key.Secret(), cosignedAt)...)
	}
	return signed
}

// Promises: leaf-form, checkpoint-size, verify-signatures
func TestOpenVerifiesSignaturesAndQuorum(t *testing.T) {
	stranger := seeded(t, ForLog, origin, 200)
	c := Checkpoint{origin, 3, goldenTree(t).Root()}
	signed := []byte(goldenCheckpoint)
	byStranger, err := Sign(c, stranger)
	expect.OK(t, err)
	byBoth, err := Sign(c, stranger, logKey(t))
	expect.OK(t, err)
	other, err := Sign(Checkpoint{"other.example/log", 3, c.Root}, seeded(t, ForLog, "other.example/log", 0))
	expect.OK(t, err)
	crowded := func(signatures int) []byte {
		return append(bytes.Clone(signed), strings.Repeat("— other.example/log AAAAAAAA\n", signatures-1)...)
	}
	expect.ErrorIf(t, MaxCheckpoint != 64<<10 || MaxLeaf != 512,
		"got checkpoints of %d bytes and leaves of %d, want 64 KiB and 512", MaxCheckpoint, MaxLeaf)
	wrong := strings.Replace(string(withLines(t, signed, witnessKey(t, 1), witnessKey(t, 2))), "ntLeCQ==", "ntLeDQ==", 1)
	for _, c := range []struct {
		name       string
		checkpoint []byte
		want       error
	}{
		{"both witnesses", withLines(t, signed, witnessKey(t, 1), witnessKey(t, 2)), nil},
		{"both in another order", withLines(t, signed, witnessKey(t, 2), witnessKey(t, 1)), nil},
		{"an unknown witness more", withLines(t, signed, witnessKey(t, 1), witnessKey(t, 3), witnessKey(t, 2)), nil},
		{"an old and a new key", withLines(t, byBoth, witnessKey(t, 1), witnessKey(t, 2)), nil},
		{"one witness", withLines(t, signed, witnessKey(t, 2)), ErrQuorum},
		{"one witness twice", withLines(t, signed, witnessKey(t, 1), witnessKey(t, 1)), ErrQuorum},
		{"no witness", signed, ErrQuorum},
		{"an unknown key of the log", withLines(t, byStranger, witnessKey(t, 1), witnessKey(t, 2)), ErrSignature},
		{"another log with the key", withLines(t, other, witnessKey(t, 1), witnessKey(t, 2)), ErrSignature},
		{"a wrong cosignature", []byte(wrong), ErrSignature},
		{"a note without end", signed[:len(signed)-1], ErrCheckpoint},
		{"no signature", []byte(goldenText + "\n"), ErrSignature},
		{"no note", []byte(goldenText), ErrCheckpoint},
		{"100 signatures", crowded(100), ErrQuorum},
		{"101 signatures", crowded(101), ErrSignature},
		{"a long note", append(bytes.Repeat([]byte("x\n"), MaxCheckpoint), signed...), ErrCheckpoint},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := twoWitnesses(t).Open(c.checkpoint)
			expect.FatalIf(t, !errors.Is(err, c.want) || (err == nil) != (c.want == nil),
				"got %+v, %v, want %v", got, err, c.want)
			if err != nil {
				return
			}
			want := Signed{Checkpoint{origin, 3, goldenTree(t).Root()}, []Cosigner{{"a", cosignedAt}, {"b", cosignedAt}}}
			expect.NoDiff(t, cmp.Diff(want, got), "the checkpoint")
		})
	}
}

func TestEachFlippedBitOfACheckpointIsFound(t *testing.T) {
	policy := twoWitnesses(t)
	signed := withLines(t, []byte(goldenCheckpoint), witnessKey(t, 1), witnessKey(t, 2))
	for i := range 8 * len(signed) {
		damaged := bytes.Clone(signed)
		damaged[i/8] ^= 1 << (i % 8)
		if _, err := policy.Open(damaged); err == nil {
			t.Errorf("got no error with bit %d of byte %d flipped, want one:\n%s", i%8, i/8, damaged)
		}
	}
	for end := range signed {
		if _, err := policy.Open(signed[:end]); err == nil {
			t.Errorf("got no error of the first %d bytes, want one", end)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(withLines(f, []byte(goldenCheckpoint), witnessKey(f, 1), witnessKey(f, 2)))
	f.Add([]byte(goldenCheckpoint))
	policy := twoWitnesses(f)
	f.Fuzz(func(t *testing.T, checkpoint []byte) {
		if got, err := policy.Open(checkpoint); err == nil && got.Text() != goldenText {
			t.Errorf("got %s, which nobody signed", got.Text())
		}
	})
}
