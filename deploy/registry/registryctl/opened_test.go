package registryctl

import (
	"encoding/json"
	"errors"
	"testing"

	"asset-registry.example/client"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// counter counts the checkpoints that it is asked to open. It refuses "bad".
type counter struct{ opened int }

func (c *counter) Open(checkpoint []byte) (translog.Signed, error) {
	c.opened++
	if string(checkpoint) == "bad" {
		return translog.Signed{}, translog.ErrSignature
	}
	return translog.Signed{Checkpoint: translog.Checkpoint{Origin: string(checkpoint)}}, nil
}

func TestACheckpointIsOpenedOnce(t *testing.T) {
	var c counter
	l := lastOpened{policy: &c}
	text := make([]byte, 1)
	for _, step := range []struct {
		text   string
		opened int // how many checkpoints c must have opened in total after this step
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"b", 2}, {"bad", 3}, {"bad", 4}, {"b", 4}, {"", 5}, {"", 5}, {"a", 6}} {
		text = append(text[:0], step.text...) // reuses the memory of text, as callers may do
		signed, err := l.Open(text)
		if want := step.text == "bad"; errors.Is(err, translog.ErrSignature) != want || err != nil && !want {
			t.Errorf("%q: got %v, want an error: %t", step.text, err, want)
		} else if !want && signed.Origin != step.text {
			t.Errorf("%q: got the checkpoint %q", step.text, signed.Origin)
		}
		expect.Equal(t, c.opened, step.opened, "%q, opened", step.text)
	}
}

func BenchmarkVerifyAsset(b *testing.B) {
	r := newTestRegistry(b, 0)
	policy := expect.Get(translog.LogPolicy(r.key.Public()))(b)
	var answer struct{ Data client.Proof }
	expect.OK(b, json.Unmarshal([]byte(r.proof(289)), &answer))
	proof := expect.Get(proofOf(answer.Data))(b)
	for _, c := range []struct {
		name   string
		policy translog.Opener
	}{{"policy", policy}, {"lastOpened", &lastOpened{policy: policy}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, _, _, err := proof.VerifyAsset(c.policy); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
