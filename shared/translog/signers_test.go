package translog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	line, err := Cosign(signed, witness, at)
	expect.OK(t, err)
	got, err := Signers(append(signed, line...))
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
			if len(s.ID) != 8 || s.At.Year() > 9999 {
				t.Errorf("got %+v, want an id of 8 digits and a time", s)
			}
		}
	})
}
