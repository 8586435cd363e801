package translog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/cosign"
	"asset-registry/shared/testing/expect"
)

func TestSignersNamesTheKeysOfACheckpoint(t *testing.T) {
	log, err := GenerateKey(ForLog, "registry.example/log")
	expect.OK(t, err)
	witness, err := GenerateKey(ForWitness, "witness.example/w1")
	expect.OK(t, err)
	signed, err := Sign(Checkpoint{Origin: "registry.example/log", Root: Tree{}.Root()}, log)
	expect.OK(t, err)
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	got, err := Signers(append(signed, cosign.Line(signed, witness.Secret(), at)...))
	expect.OK(t, err)
	id := func(k Key) string { return k.Public().String()[len(k.Public().Name())+1:][:8] }
	want := []Signer{{"registry.example/log", id(log), time.Time{}}, {"witness.example/w1", id(witness), at}}
	expect.NoDiff(t, cmp.Diff(want, got), "the signers")
	if got, err := Signers([]byte("registry.example/log\n0\n")); err == nil {
		t.Errorf("got %v of a text without signatures, want an error", got)
	}
}

func FuzzSigners(f *testing.F) {
	f.Add([]byte("a\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— a AAAAAAA=\n"))
	f.Fuzz(func(t *testing.T, signed []byte) {
		all, err := Signers(signed)
		if _, refused := Unverified(signed); (err == nil) != (refused == nil) {
			t.Errorf("got %v, want an error only for a malformed checkpoint: %v", err, refused)
		}
		for _, s := range all {
			expect.ErrorIf(t, len(s.ID) != 8 || s.At.Year() > 9999, "got %+v, want an id of 8 digits and a time", s)
		}
	})
}

func TestASubmissionIsEncoded(t *testing.T) {
	root := goldenTree(t).Root()
	for _, c := range []struct {
		of   Submission
		want string
	}{
		{Submission{2, []tlog.Hash{root, root}, []byte(goldenCheckpoint)},
			"old 2\n" + goldenRoot + "\n" + goldenRoot + "\n\n" + goldenCheckpoint},
		{Submission{Checkpoint: []byte(goldenCheckpoint)}, "old 0\n\n" + goldenCheckpoint},
	} {
		expect.Equal(t, string(c.of.Encode()), c.want, "")
	}
}

func TestTheCosignatureOfAWitnessIsTakenFromItsAnswer(t *testing.T) {
	signed := []byte(goldenCheckpoint)
	other := cosign.Line(signed, witnessKey(t, 2).Secret(), cosignedAt)
	foreign := cosign.Line([]byte(strings.Replace(goldenCheckpoint, "\n3\n", "\n4\n", 1)), witnessKey(t, 1).Secret(),
		cosignedAt)
	for _, c := range []struct {
		name, answer string
		want         error
	}{
		{"its line", goldenCosignature, nil},
		{"its line among others", string(other) + goldenCosignature, nil},
		{"the line of another", string(other), ErrSignature},
		{"a cosignature of another checkpoint", string(foreign), ErrSignature},
		{"nothing", "", ErrSignature},
		{"a text", "text\n", ErrCheckpoint},
		{"a second note", "\n" + goldenCosignature, ErrCheckpoint},
		{"no end", strings.TrimSuffix(goldenCosignature, "\n"), ErrCheckpoint},
	} {
		t.Run(c.name, func(t *testing.T) {
			line, err := Cosignature(signed, []byte(c.answer), witnessKey(t, 1).Public())
			expect.FatalIf(t, !errors.Is(err, c.want) || (err == nil) != (c.want == nil),
				"got %s, %v, want %v", line, err, c.want)
			expect.ErrorIf(t, err == nil && string(line) != goldenCosignature, "got %s, want %s", line, goldenCosignature)
		})
	}
}
