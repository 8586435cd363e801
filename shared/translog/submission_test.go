package translog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

const goldenSubmission = "old 2\n" + goldenRoot + "\n" + goldenRoot + "\n\n" + goldenCheckpoint

func TestSubmissionsAreEncodedAndRead(t *testing.T) {
	for _, text := range []string{goldenSubmission, "old 0\n\n" + goldenCheckpoint} {
		s, err := ParseSubmission([]byte(text))
		if err != nil || string(s.Encode()) != text || string(s.Checkpoint) != goldenCheckpoint {
			t.Errorf("got %s, %v, want %s", s.Encode(), err, text)
		}
	}
}

func TestParseSubmissionRefuses(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(goldenSubmission, old, new, 1) }
	for _, c := range []struct{ name, body string }{
		{"nothing", ""},
		{"no size", strings.TrimPrefix(goldenSubmission, "old 2\n")},
		{"a size without its name", change("old 2", "2")},
		{"no end of the hashes", strings.Split(goldenSubmission, "\n\n")[0]},
		{"a leading zero", change("old 2", "old 02")},
		{"a negative size", change("old 2", "old -2")},
		{"a size that is too large", change("old 2", "old 4611686018427387904")},
		{"a blank more", change("old 2", "old  2")},
		{"a malformed hash", change(goldenRoot, goldenRoot[1:])},
		{"too many hashes", change(goldenRoot+"\n", strings.Repeat(goldenRoot+"\n", 63))},
		{"no empty line", "old 2\n" + goldenRoot + "\n"},
		{"a long body", goldenSubmission + strings.Repeat("x", MaxSubmission)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := ParseSubmission([]byte(c.body)); !errors.Is(err, ErrSubmission) {
				t.Errorf("got %+v, %v, want %v", got, err, ErrSubmission)
			}
		})
	}
}

func TestTheCosignatureOfAWitnessIsTakenFromItsAnswer(t *testing.T) {
	signed := []byte(goldenCheckpoint)
	other, err := Cosign(signed, witnessKey(t, 2), cosignedAt)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := Cosign([]byte(strings.Replace(goldenCheckpoint, "\n3\n", "\n4\n", 1)), witnessKey(t, 1), cosignedAt)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		answer string
		want   error
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
			line, at, err := Cosignature(signed, []byte(c.answer), witnessKey(t, 1).Public())
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("got %s, %v, want %v", line, err, c.want)
			}
			if err == nil && (string(line) != goldenCosignature || !at.Equal(cosignedAt)) {
				t.Errorf("got %s at %v, want %s", line, at, goldenCosignature)
			}
		})
	}
}

func FuzzParseSubmission(f *testing.F) {
	f.Add([]byte(goldenSubmission))
	f.Add([]byte("old 0\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s, err := ParseSubmission(body); err == nil && !bytes.Equal(s.Encode(), body) {
			t.Errorf("got %q of %q, want the same", s.Encode(), body)
		}
	})
}
