package translog

import (
	"errors"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// Another implementation computed these values from the specifications of C2SP,
// with the seeds 0 to 31 and 32 to 63.
const (
	origin        = "registry.example/log"
	goldenSecret  = "PRIVATE+KEY+registry.example/log+952bc5e7+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
	goldenPublic  = "registry.example/log+952bc5e7+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
	goldenWitness = "witness.example/w1+20324abe+BCmsuuFBvMrwsi4alNNNC8c2HlJtC/4SyJeUvJMilm3X"
)

// seeded returns a key whose seed is 32 bytes. The argument `first` is the first byte, and each further byte is greater
// by one.
func seeded(t testing.TB, use Use, name string, first byte) Key {
	t.Helper()
	seed := make([]byte, 32)
	for i := range seed {
		seed[i] = first + byte(i)
	}
	key, err := NewKey(use, name, seed)
	expect.OK(t, err)
	return key
}

func logKey(t testing.TB) Key { t.Helper(); return seeded(t, ForLog, origin, 0) }

func witnessKey(t testing.TB, n int) Key {
	t.Helper()
	return seeded(t, ForWitness, "witness.example/w"+string(rune('0'+n)), byte(32*n))
}

func TestKeysHaveTheFormsOfSignedNotes(t *testing.T) {
	key := logKey(t)
	if key.Secret() != goldenSecret || key.Public().String() != goldenPublic {
		t.Errorf("got %s, %s, want %s, %s", key.Secret(), key.Public(), goldenSecret, goldenPublic)
	}
	expect.Equal(t, witnessKey(t, 1).Public().String(), goldenWitness, "")
	if got, err := ParseKey(goldenSecret); err != nil || got.Secret() != goldenSecret {
		t.Errorf("got %v, want the same key", err)
	}
	for _, text := range []string{goldenPublic, goldenWitness} {
		if got, err := ParsePublicKey(text); err != nil || got.String() != text {
			t.Errorf("got %s, %v, want %s", got, err, text)
		}
	}
}

func TestGeneratedKeysDiffer(t *testing.T) {
	for _, use := range []Use{ForLog, ForWitness} {
		a, errA := GenerateKey(use, origin)
		b, errB := GenerateKey(use, origin)
		expect.ErrorIf(t, errA != nil || errB != nil || a.Secret() == b.Secret(),
			"got %v, %v, or twice the same key", errA, errB)
		if got, err := ParseKey(a.Secret()); err != nil || got.Public() != a.Public() {
			t.Errorf("got %s, %v, want %s", got.Public(), err, a.Public())
		}
	}
}

func TestMalformedKeysAreRefused(t *testing.T) {
	for _, c := range []struct{ name, key string }{
		{"nothing", ""},
		{"no parts", "registry.example/log"},
		{"another id", strings.Replace(goldenPublic, "952bc5e7", "952bc5e8", 1)},
		{"an id in capitals", strings.Replace(goldenPublic, "952bc5e7", "952BC5E7", 1)},
		{"a short id", strings.Replace(goldenPublic, "952bc5e7", "952bc5", 1)},
		{"another name", "x" + goldenPublic},
		{"no name", strings.TrimPrefix(goldenPublic, origin)},
		{"a blank in the name", strings.Replace(goldenPublic, "/", " ", 1)},
		{"stray bits", goldenPublic[:len(goldenPublic)-1] + "5"},
		{"a short key", goldenPublic[:len(goldenPublic)-4]},
		{"a newline", goldenPublic + "\n"},
		{"another type", strings.Replace(goldenPublic, "+AQ", "+Ag", 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.ErrOf(t, ErrKey, "")(ParsePublicKey(c.key))
			secret := strings.NewReplacer(goldenPublic, goldenSecret).Replace(c.key)
			if _, err := ParseKey(secret); !errors.Is(err, ErrKey) || strings.Contains(err.Error(), "AQABAgME") {
				t.Errorf("got %v of a secret key, want %v without the secret", err, ErrKey)
			}
		})
	}
	damaged := strings.Replace(goldenSecret, "AQABAgME", "AQABAgMF", 1)
	if _, err := ParseKey(damaged); !errors.Is(err, ErrKey) || strings.Contains(err.Error(), "AQABAgMF") {
		t.Errorf("got %v of a damaged secret, want %v without the secret", err, ErrKey)
	}
}

func FuzzParsePublicKey(f *testing.F) {
	f.Add(goldenPublic)
	f.Add(goldenWitness)
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := ParsePublicKey(text); err == nil && key.String() != text {
			t.Errorf("got %s of %s, want the same", key, text)
		}
	})
}
