package translog

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/expect"
)

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
	other, err := Cosign(signed, witnessKey(t, 2), cosignedAt)
	expect.OK(t, err)
	foreign, err := Cosign([]byte(strings.Replace(goldenCheckpoint, "\n3\n", "\n4\n", 1)), witnessKey(t, 1), cosignedAt)
	expect.OK(t, err)
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
			line, err := Cosignature(signed, []byte(c.answer), witnessKey(t, 1).Public())
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("got %s, %v, want %v", line, err, c.want)
			}
			if err == nil && string(line) != goldenCosignature {
				t.Errorf("got %s, want %s", line, goldenCosignature)
			}
		})
	}
}
