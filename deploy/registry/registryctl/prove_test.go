package registryctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry.example/client"
	"asset-registry/shared/testing/cosign"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

func TestAProofIsWrittenAndVerified(t *testing.T) {
	r := newTestRegistry(t, 0)
	key := r.key.Public().String()
	r.answers["/api/2.5/assets/"+idOf(5)+"/proof?revision=47"] = r.erased(45)
	for _, c := range []struct {
		name string
		args []string
		want provenFacts
	}{
		{"the newest change", []string{idOf(9)}, provenFacts{Index: 289, Kind: "change", Asset: idOf(9), Revision: 291,
			Time: "2026-09-21 14:13:20.289867", Content: matches}},
		{"a revision", []string{idOf(3), "--revision", "5"}, provenFacts{Index: 3, Kind: "publish", Asset: idOf(3),
			Revision: 5, Time: "2026-09-21 14:13:20.003009", Content: matches}},
		{"a withdrawal", []string{idOf(7)}, provenFacts{Index: 287, Kind: "withdraw", Asset: idOf(7), Revision: 289,
			Time: "2026-09-21 14:13:20.287861", Content: withdrawn}},
		{"an erased revision", []string{idOf(5), "--revision", "47"}, provenFacts{Index: 45, Kind: "change",
			Asset: idOf(5), Revision: 47, Time: "2026-09-21 14:13:20.045135", Content: erased}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Origin, c.want.Size, c.want.Cosigned = testOrigin, 300, []string{}
			saved := r.proof(c.want.Index)
			if c.want.Content == erased {
				saved = r.erased(c.want.Index)
			}
			var indented bytes.Buffer
			expect.OK(t, json.Indent(&indented, []byte(saved), "", "    "))
			proof := expect.Get(run(t, append([]string{"--url", r.URL, "prove"}, c.args...)...))(t)
			for _, form := range []string{proof, saved, "\ufeff" + indented.String() + "\n"} {
				text, err := run(t, "-o", "json", "verify", file(t, "x", []byte(form)), "--public-key", key)
				expect.FatalIf(t, (err != nil) != (c.want.Content == erased),
					"%s: got %v, want an error without content only", form, err)
				var got provenFacts
				expect.OK(t, json.Unmarshal([]byte(text), &got))
				expect.NoDiff(t, cmp.Diff(c.want, got), "the facts differ")
			}
		})
	}
}

func TestTheFactsOfAProofAreLines(t *testing.T) {
	r := newTestRegistry(t, 0)
	witness := newTestKey(t, translog.ForWitness, "witness.example/w", 2)
	line := cosign.Line(r.signed, witness.Secret(), time.Unix(1790000000, 0))
	policy := file(t, "policy", fmt.Appendf(nil, "log %s\nwitness w %s\nquorum w\n", r.key.Public(), witness.Public()))
	alone := expect.Get(run(t, "--url", r.URL, "prove", idOf(9)))(t)
	if _, err := run(t, "verify", file(t, "x", []byte(alone)), "--policy", policy); err == nil ||
		!strings.HasSuffix(err.Error(), "x is not valid: "+translog.ErrQuorum.Error()) {
		t.Errorf("got %v without the witness, want %v", err, translog.ErrQuorum)
	}
	r.signed = append(r.signed, line...)
	proof := expect.Get(run(t, "--url", r.URL, "prove", idOf(9)))(t)
	got, err := run(t, "verify", file(t, "x", []byte(proof)), "--policy", policy)
	want := `origin: registry.example/log
size: 300
index: 289
kind: change
asset: 00000000000000000000000000000009
revision: 291
time: 2026-09-21 14:13:20.289867
content: matches the leaf
cosigned:
  - w
`
	expect.ErrorIf(t, err != nil || got != want, "got %s, %v, want %s", got, err, want)
}

func TestTamperedProofsAreRefused(t *testing.T) {
	r := newTestRegistry(t, 0)
	text := expect.Get(run(t, "--url", r.URL, "prove", idOf(9)))(t)
	good := []byte(text)
	proof := expect.Get(translog.ParseProof(good))(t)
	otherAsset, otherIndex, otherRoot := proof, proof, proof
	otherAsset.Extra = bytes.Replace(proof.Extra, []byte("240.50"), []byte("240.5"), 1)
	otherIndex.Index++
	otherRoot.Checkpoint = newTestRegistry(t, 1).signed
	other := newTestKey(t, translog.ForLog, testOrigin, 2).Public().String()
	key := r.key.Public().String()
	saved := r.proof(289)
	forged := func(what, by string) []byte {
		expect.FatalIf(t, !strings.Contains(saved, what), "got no %q in %s, want it there", what, saved)
		return []byte(strings.Replace(saved, what, by, 1))
	}
	for _, c := range []struct {
		name, key string
		proof     []byte
		want      string
	}{
		{"another asset, saved", key, forged("240.50", "240.5"), translog.ErrMismatch.Error()},
		{"another index, saved", key, forged(`"index":289`, `"index":288`), translog.ErrIncluded.Error()},
		{"another leaf, saved", key, forged(`"revision":291`, `"revision":292`), translog.ErrIncluded.Error()},
		{"a leaf twice, saved", key, forged(`"leaf"`, `"leaf":{},"leaf"`), translog.ErrProof.Error()},
		{"another key, saved", other, []byte(saved), translog.ErrSignature.Error()},
		{"no hash, saved", key, forged(`"path":["`, `"path":["!`), translog.ErrProof.Error()},
		{"half a file, saved", key, []byte(saved[:len(saved)/2]), translog.ErrProof.Error()},
		{"an error, saved", key, []byte(`{"status":"error"}`), translog.ErrProof.Error()},
		{"another asset", key, otherAsset.Encode(), translog.ErrMismatch.Error()},
		{"another index", key, otherIndex.Encode(), translog.ErrIncluded.Error()},
		{"the checkpoint of another tree", key, otherRoot.Encode(), translog.ErrIncluded.Error()},
		{"another key", other, good, translog.ErrSignature.Error()},
		{"half a file", key, good[:len(good)/2], translog.ErrProof.Error()},
		{"nothing", key, nil, translog.ErrProof.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := run(t, "verify", file(t, "x.tlog-proof", c.proof), "--public-key", c.key)
			if err == nil || got != "" || !strings.Contains(err.Error(), "x.tlog-proof is not valid: "+c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func FuzzProofOf(f *testing.F) {
	r := newTestRegistry(f, 0)
	for _, answer := range []string{r.proof(289), r.proof(287), r.erased(45), `{"data":{"path":["AA=="]}}`} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		var got struct{ Data client.Proof }
		if err := json.Unmarshal(answer, &got); err != nil {
			return
		}
		proof, err := proofOf(got.Data)
		if err != nil || proof.Index < 0 || proof.Index > translog.MaxSize || len(proof.Path) > 63 {
			return
		}
		read, err := translog.ParseProof(proof.Encode())
		expect.ErrorIf(t, err != nil || !bytes.Equal(read.Encode(), proof.Encode()),
			"got %+v, %v, want the proof as it was written: %+v", read, err, proof)
	})
}

func TestAProofOfAnotherChangeIsNotWritten(t *testing.T) {
	r := newTestRegistry(t, 0)
	path := "/api/2.5/assets/" + idOf(9) + "/proof"
	for _, c := range []struct{ name, answer, revision, want string }{
		{"another asset", r.proof(0), "0", "of another change"},
		{"another revision", r.proof(289), "4", "of another change"},
		{"no leaf", `{"data":{}}`, "0", "malformed leaf"},
		{"a damaged path", strings.Replace(r.proof(289), `"path":["`, `"path":["!`, 1), "0", "malformed hash"},
		{"a damaged salt", strings.Replace(r.proof(289), `"salt":"`, `"salt":"x`, 1), "0", "malformed salt"},
		{"a negative revision", "", "-1", "0 or more"},
		{"none", "", "0", "404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.answers[path], r.answers[path+"?revision=4"] = c.answer, c.answer
			got, err := run(t, "--url", r.URL, "prove", idOf(9), "--revision", c.revision)
			if err == nil || got != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
