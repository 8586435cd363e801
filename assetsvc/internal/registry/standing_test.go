package registry_test

import (
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// TestRefusalsNameTheReason has a case for each caller. In each case the registry refuses a change, a change of a part,
// and a read of the revisions. Each refusal must name its reason.
func TestRefusalsNameTheReason(t *testing.T) {
	r, _, _, id := open(t)
	const (
		change, part = "body/data: Can't update asset in current (draft) status", "url/permission: Forbidden"
		another      = ": the API key belongs to another broker than the asset; use a key of the asset's owner"
		others       = ": only the owner or administrator changes it"
		missing      = ": the owner token is missing; send it as header X-Access-Token"
		wrong        = ": the owner token is wrong; send the one that the asset's creation, or its last transfer, returned"
	)
	stranger := identity.Identity{Broker: "stranger", Role: identity.Broker, Levels: "1234"}
	colleague := identity.Identity{Broker: owner.Broker, Role: identity.Concierge, Levels: owner.Levels}
	onlyOwner, onlyReaders := part+": only the owner changes decisions",
		part+": only the owner and the administrator read revisions"
	for _, c := range []struct {
		name                          string
		by                            identity.Identity
		token, change, part, revision string
	}{
		{"no token", owner, "", change + missing + ", query acc_token or body access.token",
			part + missing + ", query acc_token or body access.token",
			part + missing + " or query acc_token"},
		{"a wrong token", owner, "sesame", change + wrong, part + wrong, part + wrong},
		{"another broker", stranger, "", change + another, part + another, part + another},
		{"another broker with the token", stranger, "token", change + another, part + another, part + another},
		{"another broker with a wrong token", stranger, "sesame", change + another, part + another, part + another},
		{"a caller that is not a broker", concierge, "", change + others, onlyOwner, onlyReaders},
		{"a concierge with the right token", concierge, "token", change + others, onlyOwner, onlyReaders},
		{"a concierge of the owner with the right token", colleague, "token", change + others, onlyOwner, onlyReaders},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := r.Change(t.Context(), c.by, id, c.token, registry.Input{Fields: parse(t, `{"colour":1}`)})
			tells(t, err, c.change)
			_, _, err = r.ChangePart(t.Context(), c.by, place(t, id, "decisions", ""), c.token, asset.Add,
				registry.Input{Fields: parse(t, validDecision)})
			tells(t, err, c.part)
			_, err = r.Revisions(t.Context(), c.by, id, c.token, 0, 1)
			tells(t, err, c.revision)
		})
	}
	expect.Get(r.Change(t.Context(), owner, id, "token",
		registry.Input{Fields: parse(t, `{"status":"pending"}`)}))(t)
	expect.Get(r.Change(t.Context(), concierge, id, "",
		registry.Input{Fields: parse(t, `{"status":"verification"}`)}))(t)
	_, err := r.Change(t.Context(), owner, id, "", registry.Input{Fields: parse(t, `{}`)})
	// The refusal names the status and not the token, because the right token would not help.
	tells(t, err, "body/data: Can't update asset in current (verification) status: only the concierge or administrator changes it")
	for _, c := range []struct {
		by     identity.Identity
		to, it string
	}{
		{concierge, "complete", "it can become pending or active"},
		{owner, "active", "only the concierge or administrator sets active"},
	} {
		_, err := r.Change(t.Context(), c.by, id, "token", registry.Input{Fields: parse(t, `{"status":"`+c.to+`"}`)})
		tells(t, err, "body/data: Can't update asset in current (verification) status: "+c.it)
	}
	expect.Get(r.Change(t.Context(), concierge, id, "", registry.Input{Fields: parse(t, `{"status":"pending"}`)}))(t)
	_, err = r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"status":"verification"}`)})
	tells(t, err, "body/data: Can't update asset in current (pending) status: only the concierge or administrator sets verification")
	_, err = r.Change(t.Context(), concierge, id, "", registry.Input{Fields: parse(t, `{"status":"complete"}`)})
	tells(t, err, "body/data: Can't update asset in current (pending) status: it can become verification or deleted")
}

func tells(t *testing.T, err error, want string) {
	t.Helper()
	expect.ErrorIf(t, fault.KindOf(err) != fault.Forbidden || err.Error() != want, "got  %v\nwant %s", err, want)
}

// TestRefusalsNameTheLevels has a case for each set of levels that is not enough. The refusal must name the level that
// is needed, and the levels that the key has.
func TestRefusalsNameTheLevels(t *testing.T) {
	r, _, _, id := open(t)
	const start = "Broker Accreditation level does not permit "
	for _, c := range []struct{ levels, has string }{{"124", "1, 2, 4"}, {"1t", "1"}, {"", "none"}, {"t", "none"}} {
		want := "level 3 is needed, and the levels of this API key are: " + c.has
		by := identity.Identity{Broker: "b", Role: identity.Broker, Levels: c.levels}
		_, err := r.Create(t.Context(), by, registry.Input{Fields: parse(t, validAsset)})
		tells(t, err, "body/accreditation: "+start+"asset creation: "+want)
		_, err = r.ChangeOwner(t.Context(), by, id, nil, registry.Handover{Transfer: "t", Token: "x"})
		tells(t, err, "body/data: "+start+"ownership change: "+want)
	}
	by := identity.Identity{Broker: "b", Role: identity.Broker, Levels: "3t"}
	_, err := r.Create(t.Context(), by, registry.Input{Fields: parse(t, validAsset)})
	tells(t, err, "body/mode: "+start+"asset creation: the API key is test-only (level t), so mode must be 'test'")
	_, err = r.ChangeOwner(t.Context(), by, id, nil, registry.Handover{Transfer: "t", Token: "x"})
	tells(t, err, "body/data: "+start+"ownership change: this API key is test-only (level t), and changes assets in test mode only")
}

// TestATestOnlyKeyChangesTestAssetsOnly has a case for each kind of write. It sends the write with test-only
// keys, to a real asset and to an asset in test mode. Only the writes to the asset in test mode may succeed.
// Promises: test-only
func TestATestOnlyKeyChangesTestAssetsOnly(t *testing.T) {
	const refused = "url/permission: Forbidden: this API key is test-only (level t), and changes assets in test mode only"
	tester := identity.Identity{Broker: "broker", Role: identity.Broker, Levels: "34t"}
	testConcierge := identity.Identity{Broker: "concierge", Role: identity.Concierge, Levels: "t"}
	testAdmin := identity.Identity{Broker: "administrator", Role: identity.Administrator, Levels: "0t"}
	r, _, _, genuine := open(t)
	created := expect.Get(r.Create(t.Context(), tester, registry.Input{Fields: parse(t, validAsset).With("mode",
		"test")}))(t)
	send := func(by identity.Identity, in registry.Input) func(string) error {
		return func(id string) error {
			_, err := r.Change(t.Context(), by, id, "token", in)
			return err
		}
	}
	change := func(by identity.Identity, sent string) func(string) error {
		return send(by, registry.Input{Fields: parse(t, sent)})
	}
	part := func(by identity.Identity, path, partID string, verb asset.Verb, sent string) func(string) error {
		return func(id string) error {
			_, _, err := r.ChangePart(t.Context(), by, place(t, id, path, partID), "token", verb,
				registry.Input{Fields: parse(t, sent)})
			return err
		}
	}
	for _, c := range []struct {
		name string
		do   func(id string) error
	}{
		{"PATCH", change(tester, `{"title":"y"}`)},
		{"an empty PATCH", change(tester, `{}`)},
		{"PUT", send(tester, registry.Input{Fields: parse(t, validAsset), Whole: true})},
		{"add a decision", part(tester, "decisions", "", asset.Add, validDecision)},
		{"add a related process", part(testConcierge, "related_processes", "", asset.Add,
			`{"relatedProcessID":"`+strings.Repeat("d", 32)+`"}`)},
		{"publish", change(tester, `{"status":"pending"}`)},
		{"verify", change(testConcierge, `{"status":"verification"}`)},
		{"send back", change(testAdmin, `{"status":"pending"}`)},
		{"add a document", part(tester, "documents", "", asset.Add,
			`{"documentType":"notice","title":"x","url":"http://docs/1"}`)},
		{"admit the caller", func(id string) error {
			return r.Admit(t.Context(), tester, place(t, id, "items", ""), "")
		}},
	} {
		if err := c.do(created.ID); err != nil {
			t.Errorf("%s: got %v for an asset in test mode, want nil", c.name, err)
		}
		if err := c.do(genuine); err == nil || err.Error() != refused {
			t.Errorf("%s: got %v for a real asset, want %s", c.name, err, refused)
		}
	}
	tells(t, change(testAdmin, `{"mode":null}`)(created.ID), refused) // the change would make the asset real
	if err := part(tester, "items", "none", asset.Merge, `{}`)(genuine); fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v for a missing item, want kind NotFound", err)
	}
	if stored, err := r.Read(t.Context(), genuine); err != nil || stored.Revision != 1 {
		t.Errorf("the real asset: got revision %d, %v; want revision 1", stored.Revision, err)
	}
}
