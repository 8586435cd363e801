package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// wholeLog is a public log that covers the whole record. The path in its proofs is always the same.
type wholeLog struct {
	registry.Store
	upto  int64 // position up to which the checkpoint covers the record; 0: all of it
	alter func(leaf []byte) []byte
	fail  error
}

func (l *wholeLog) Prove(ctx context.Context, position int64) (translog.Proof, []byte, error) {
	switch {
	case l.fail != nil:
		return translog.Proof{}, nil, l.fail
	case l.upto > 0 && position > l.upto:
		return translog.Proof{}, nil, registry.ErrNotLogged
	}
	page, err := l.Changes(ctx, registry.ChangesQuery{After: position - 1, Limit: 1, Bytes: 1})
	if err != nil || len(page.Changes) == 0 {
		return translog.Proof{}, nil, fmt.Errorf("no change at %d: %w", position, err)
	}
	leaf, _, _, err := page.Changes[0].Leaf()
	text := leaf.Encode()
	if l.alter != nil {
		text = l.alter(text)
	}
	return translog.Proof{Index: 7, Path: []tlog.Hash{{1}}, Checkpoint: []byte("checkpoint")}, text, err
}

// reads is a store that counts the reads of an asset's history.
type reads struct {
	registry.Store
	logs, most int // the field `most` is the largest limit of a read
}

func (s *reads) Log(ctx context.Context, id string, q registry.LogQuery) ([]registry.Revision, error) {
	s.logs, s.most = s.logs+1, max(s.most, q.Limit)
	return s.Store.Log(ctx, id, q)
}

// prover is a registry with one asset, and with a public log that covers the whole record.
type prover struct {
	*registry.Registry
	id     string
	store  *reads
	tokens registry.Tokens
	log    *wholeLog
}

func newProver(t *testing.T) *prover {
	t.Helper()
	_, store, keys, id := open(t)
	counted := &reads{Store: store}
	log := &wholeLog{Store: store}
	return &prover{registry.New(counted, keys, plainRules, time.Now).WithLog(log), id, counted, keys, log}
}

// change changes the asset and returns its new record.
func (p *prover) change(t *testing.T, fields string) registry.Record {
	t.Helper()
	by := owner
	if strings.Contains(fields, `"mode"`) {
		by = admin
	}
	changed, err := p.Change(t.Context(), by, p.id, "token", registry.Input{Fields: parse(t, fields)})
	expect.Must(t, err, "%s", fields)
	return changed
}

// TestEachPublicRevisionIsProved takes an asset from draft through all states, and asks for a proof of each
// revision. Prove must succeed for each public revision, and refuse the others.
func TestEachPublicRevisionIsProved(t *testing.T) {
	p := newProver(t)
	var want []string // the wanted result for each revision; want[0] is for revision 1
	bodies := []string{""}
	want = append(want, "404")
	for _, step := range []struct{ fields, want string }{
		{`{"title":"a"}`, "404"},
		{`{"status":"pending"}`, "publish"},
		{`{"title":"b","items":[{"quantity":240.50}]}`, "change"},
		{`{"mode":"test"}`, "withdraw"},
		{`{"title":"c"}`, "404"},
		{`{"mode":null}`, "publish"},
		{`{"title":"d"}`, "change"},
	} {
		want = append(want, step.want)
		bodies = append(bodies, string(p.change(t, step.fields).Body))
	}
	for i, kind := range append(want, "404", "change") {
		revision := int64(i + 1)
		if i == len(want)+1 {
			revision, i = 0, len(want)-1
		}
		proof, evidence, err := p.Prove(t.Context(), p.id, revision)
		if kind == "404" {
			if got := strings.Join(places(err), " "); got != "url/revision" || fault.KindOf(err) != fault.NotFound {
				t.Errorf("revision %d: got %v, want a 404 at url/revision", revision, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("revision %d: got %v, want a proof", revision, err)
			continue
		}
		want := translog.Proof{Index: 7, Path: []tlog.Hash{{1}}, Checkpoint: []byte("checkpoint")}
		expect.NoDiff(t, cmp.Diff(want, proof), "revision %d: the proof differs", revision)
		checkEvidence(t, evidence, translog.Kind(kind), p.id, int64(i+1), bodies[i])
	}
}

func checkEvidence(
	t *testing.T, e translog.Evidence, kind translog.Kind, id string, revision int64, body string,
) {
	t.Helper()
	leaf, err := translog.ParseLeaf(e.Leaf)
	if err != nil || leaf.Kind != kind || leaf.Asset != id || leaf.Revision != revision {
		t.Errorf("got leaf %s, %v; want a %s of revision %d", e.Leaf, err, kind, revision)
	}
	if kind == translog.Withdraw {
		if e.Salt != nil || e.Asset != nil {
			t.Errorf("a withdrawal: got salt %v and asset %s, want none", e.Salt, e.Asset)
		}
		return
	}
	if err := leaf.Match(e.Asset, *e.Salt); err != nil {
		t.Errorf("revision %d: got %v, want an asset that matches", revision, err)
	}
	shown := parse(t, string(e.Asset))
	if shown.Text("dateModified") == "" || !record.Equal(shown.Without("dateModified"), parse(t, body)) {
		t.Errorf("revision %d: got %s, want %s and its dateModified", revision, e.Asset, body)
	}
}

// TestAProofShowsNothingThatIsHidden changes an asset twice: first without hidden fields, then with hidden
// contacts. It asks for proofs of both changes under several settings of the hidden fields. A proof must leave out
// the asset of a change if that asset shows a field that is hidden now.
func TestAProofShowsNothingThatIsHidden(t *testing.T) {
	p := newProver(t)
	hiding := func(hidden ...asset.Group) *registry.Registry {
		return registry.New(p.store, p.tokens, hiddenRules(hidden...), time.Now).WithLog(p.log)
	}
	p.change(t, `{"status":"pending"}`) // revision 2, with all fields
	input := registry.Input{Fields: parse(t, `{"title":"b"}`)}
	if _, err := hiding(asset.Contacts).Change(t.Context(), owner, p.id, "token", input); err != nil { // revision 3
		t.Fatal(err)
	}
	for _, c := range []struct {
		hidden   []asset.Group
		revision int64
		shown    bool
		contact  bool // the asset in the proof has a contact
	}{
		{nil, 2, true, true},
		{nil, 3, true, false},
		{[]asset.Group{asset.Contacts}, 2, false, false},
		{[]asset.Group{asset.Contacts}, 3, true, false},
		{[]asset.Group{asset.Addresses, asset.Contacts}, 3, false, false},
	} {
		_, e, err := hiding(c.hidden...).Prove(t.Context(), p.id, c.revision)
		if err != nil {
			t.Errorf("revision %d without %v: got %v, want a proof", c.revision, c.hidden, err)
			continue
		}
		contact := strings.Contains(string(e.Asset), `"contactPoint"`)
		if (e.Asset != nil) != c.shown || (e.Salt != nil) != c.shown || contact != c.contact {
			t.Errorf("revision %d without %v: got the asset %s, want one: %t, with a contact: %t", c.revision, c.hidden, e.Asset,
				c.shown, c.contact)
		}
		if leaf, err := translog.ParseLeaf(e.Leaf); err != nil || c.shown && leaf.Match(e.Asset, *e.Salt) != nil {
			t.Errorf("revision %d without %v: got the leaf %s, %v, want one that matches", c.revision, c.hidden, e.Leaf, err)
		}
	}
}

func hiddenRules(hidden ...asset.Group) asset.Rules {
	rules := plainRules
	rules.Hidden = hidden
	return rules
}

func TestAProofIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(p *prover)
		kind  fault.Kind
		place string
	}{
		{"without a log", func(p *prover) { p.Registry = p.WithLog(nil) }, fault.NotFound, "url/not_found"},
		{"of a missing asset", func(p *prover) { p.id = strings.Repeat("0", 32) }, fault.NotFound, "url/asset_id"},
		{"of a malformed id", func(p *prover) { p.id = "x" }, fault.NotFound, "url/asset_id"},
		{"while no checkpoint covers the change", func(p *prover) { p.log.upto = 1 }, fault.Unavailable, "url/revision"},
		{"while the log cannot be read", func(p *prover) { p.log.fail = errors.New("down") }, fault.Unavailable, "url/store"},
		{"if the log has passed the change", func(p *prover) { p.log.fail = registry.ErrNoLeaf }, fault.Unavailable, "url/revision"},
		{"if the log is damaged", func(p *prover) { p.log.fail = registry.ErrDamagedLog }, fault.Unavailable, "url/revision"},
		{"if the log has another leaf", func(p *prover) {
			p.log.alter = func(leaf []byte) []byte { return slices.Concat(leaf, []byte(" ")) }
		}, fault.Unavailable, "url/revision"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProver(t)
			p.change(t, `{"status":"pending"}`)
			c.set(p)
			for _, revision := range []int64{0, 2} {
				_, evidence, err := p.Prove(t.Context(), p.id, revision)
				if err == nil || fault.KindOf(err) != c.kind || strings.Join(places(err), " ") != c.place {
					t.Errorf("revision %d: got %s, %v; want kind %d at %q", revision, evidence.Leaf, err, c.kind, c.place)
				}
			}
		})
	}
}

// damaging is a store that damages the record: the patch that sets the title to "b" sets it to "B" instead.
type damaging struct{ registry.Store }

func (s damaging) Log(ctx context.Context, id string, q registry.LogQuery) ([]registry.Revision, error) {
	log, err := s.Store.Log(ctx, id, q)
	for i := range log {
		log[i].Change = []byte(strings.Replace(string(log[i].Change), `"value":"b"`, `"value":"B"`, 1))
	}
	return log, err
}

func twiceChanged(t *testing.T) *prover {
	p := newProver(t)
	p.change(t, `{"status":"pending"}`)
	p.change(t, `{"title":"b"}`)
	return p
}

// keepsWhole reports whether the record has a whole asset for the newest change.
func (p *prover) keepsWhole(t *testing.T) bool {
	t.Helper()
	log, err := p.store.Log(t.Context(), p.id, registry.LogQuery{Limit: 1})
	expect.FatalIf(t, err != nil || len(log) != 1, "got %d changes, %v; want 1", len(log), err)
	return !strings.Contains(string(log[0].Change), `"value":"b"`) ||
		strings.Contains(string(log[0].Change), `"extra":"asset"`)
}

func TestAnAssetThatDoesNotMatchItsLeafIsNotProved(t *testing.T) {
	p := twiceChanged(t)
	for p.keepsWhole(t) { // the test needs a patch; whether the record has a patch or a whole asset is random
		p = twiceChanged(t)
	}
	for _, name := range []string{"2 as it was", "3 altered"} {
		r := registry.New(damaging{p.store}, nil, plainRules, time.Now).WithLog(p.log)
		_, _, err := r.Prove(t.Context(), p.id, int64(name[0]-'0'))
		if altered := strings.HasSuffix(name, "altered"); altered != errors.Is(err, translog.ErrMismatch) ||
			altered && fault.KindOf(err) != fault.Internal {
			t.Errorf("revision %s: got %v, want ErrMismatch: %t", name, err, altered)
		}
	}
}

// TestAProofReadsABoundedPartOfALongHistory asks for proofs of an asset with up to 1,300 revisions. In the newest
// 1,100 of them the asset is in test mode. Prove must not read the store more often than the limit of each case.
// Promises: proof-reads
func TestAProofReadsABoundedPartOfALongHistory(t *testing.T) {
	p := newProver(t)
	p.change(t, `{"status":"pending"}`)
	for i := range 200 {
		p.change(t, fmt.Sprintf(`{"title":"%d"}`, i))
	}
	withdrawn := p.change(t, `{"mode":"test"}`).Revision
	for _, c := range []struct {
		name     string
		changes  int // changes in test mode that are made before the request
		revision int64
		found    int64 // revision that is proved; 0: none
		reads    int
	}{
		{"the first public revision", 0, 2, 2, 200},
		{"a revision in the middle", 0, 100, 100, 200},
		{"the newest public change", 0, 0, withdrawn, 1},
		{"a draft", 0, 1, 0, 60}, // the record is read only to find the revision
		{"a revision that is to come", 0, 5000, 0, 1},
		{"the newest public change after 100 changes in test mode", 100, 0, withdrawn, 5},
		{"the newest public change after 1,100 changes in test mode", 1000, 0, 0, 34},
		{"a public revision after 1,100 changes in test mode", 0, withdrawn, withdrawn, 70},
	} {
		for i := range c.changes {
			p.change(t, fmt.Sprintf(`{"description":"%d %d"}`, i, c.changes))
		}
		p.store.logs, p.store.most = 0, 0
		_, evidence, err := p.Prove(t.Context(), p.id, c.revision)
		if c.found == 0 && strings.Join(places(err), " ") != "url/revision" {
			t.Errorf("%s: got %v, want a 404 at url/revision", c.name, err)
		}
		if leaf, parsed := translog.ParseLeaf(evidence.Leaf); c.found > 0 &&
			(err != nil || parsed != nil || leaf.Revision != c.found) {
			t.Errorf("%s: got %s, %v; want revision %d", c.name, evidence.Leaf, err, c.found)
		}
		if p.store.logs > c.reads || p.store.most > 32 {
			t.Errorf("%s: got %d reads of up to %d changes, want at most %d of 32", c.name, p.store.logs, p.store.most, c.reads)
		}
	}
}

// TestAProofHoldsABoundedPartOfTheRecord asks for proofs of a registry that may read only a limited number of
// bytes. Prove must return ErrLarge only if the proof needs more bytes.
func TestAProofHoldsABoundedPartOfTheRecord(t *testing.T) {
	p := newProver(t)
	p.change(t, `{"status":"pending"}`)
	p.change(t, fmt.Sprintf(`{"description_en":%q}`, strings.Repeat("x", 200_000)))
	p.change(t, `{"description_en":"x"}`)
	for _, c := range []struct {
		revision int64
		most     int
		large    bool
	}{{2, 64 << 10, false}, {3, 64 << 10, true}, {3, 512 << 10, false}, {4, 512 << 10, false}} {
		_, _, err := p.Upto(c.most).Prove(t.Context(), p.id, c.revision)
		if errors.Is(err, registry.ErrLarge) != c.large || !c.large && err != nil {
			t.Errorf("revision %d within %d bytes: got %v, want ErrLarge: %t", c.revision, c.most, err, c.large)
		}
	}
}

// erasing is a store whose record lacks the content and the salt of one revision.
type erasing struct {
	registry.Store
	revision int64
}

func (s erasing) Log(ctx context.Context, id string, q registry.LogQuery) ([]registry.Revision, error) {
	log, err := s.Store.Log(ctx, id, q)
	for i := range log {
		if leaf, _, public, _ := log[i].Leaf(); public && log[i].Revision == s.revision {
			log[i].Whole = nil
			log[i].Change = fmt.Appendf(nil, `{"by":{},"size":1,"leaf":{"kind":%q,"commitment":%q}}`, leaf.Kind, leaf.Commitment)
		}
	}
	return log, err
}

func TestAnErasedRevisionIsProvedWithoutItsAsset(t *testing.T) {
	p := newProver(t)
	p.change(t, `{"status":"pending"}`)
	p.change(t, `{"title":"b"}`)
	r := registry.New(erasing{p.store, 2}, nil, plainRules, time.Now).WithLog(p.log)
	_, evidence, err := r.Prove(t.Context(), p.id, 2)
	if leaf, parsed := translog.ParseLeaf(evidence.Leaf); err != nil || parsed != nil || leaf.Kind != translog.Publish ||
		evidence.Salt != nil || evidence.Asset != nil {
		t.Errorf("got %s, %v; want the leaf without a salt and an asset", evidence.Leaf, err)
	}
}
