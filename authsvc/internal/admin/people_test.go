package admin_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"net/url"
	"testing"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestTheAuditLogHasABoundedNumberOfAddresses sends wrong keys from more addresses than the log has entries for.
// Promises: refused-keys
func TestTheAuditLogHasABoundedNumberOfAddresses(t *testing.T) {
	w := newWorld(t)
	const networks, most = 1010, 1000
	for n := range networks {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], uint32(n)+1<<24)
		w.operators.Operator(t.Context(), authapi.Hash("wrong"), netip.AddrFrom4(a))
	}
	w.operators.Operator(t.Context(), authapi.Hash(""), local) // no key is no guess
	w.operators.NoteRefused(t.Context(), w.service)
	entries := expect.Get(w.service.Entries(t.Context(), 0, networks))(t)
	expect.Equal(t, len(entries), most+1, "entries")
	for _, e := range entries {
		want := `{"keys":1}`
		if e.From == "other addresses" {
			want = `{"keys":10}`
		}
		if e.Action != audit.Refuse || string(e.After) != want {
			t.Fatalf("got %s from %s: %s, want %s", e.Action, e.From, e.After, want)
		}
	}
}

// assets has assets of brokers.
type assets map[string]int

func (a assets) Asset(context.Context, string, url.Values) (adminapi.Asset, error) {
	return adminapi.Asset{}, fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found")
}

func (a assets) Titles(context.Context, string, int) ([]adminapi.Asset, bool, bool, error) {
	return nil, false, false, nil
}

func (a assets) Owned(_ context.Context, _, broker, _ string, _ int, _ bool) ([]adminapi.Asset, bool, error) {
	return make([]adminapi.Asset, a[broker]), false, nil
}

// Promises: broker-removal
func TestOnlyABrokerWithoutTracesIsRemoved(t *testing.T) {
	w := newWorld(t)
	unknowing := w.service
	w.service = w.service.WithAssets(assets{"owner": 1})
	for _, name := range []string{"plain", "owner", "keyed", "used"} {
		w.broker(t, name)
	}
	keyed, _ := w.key(t, "keyed", nil)
	used, _ := w.key(t, "used", nil)
	expect.OK(t, w.AddUsage(t.Context(), []authapi.Use{{KeyID: used, Secret: 1, Addr: local, Micros: w.now.UnixMicro()}}, nil))
	expect.Get(w.service.RevokeKey(t.Context(), operator, used))(t)
	remove := func(name string, want fault.Kind) {
		t.Helper()
		_, err := w.service.RemoveBroker(t.Context(), operator, name)
		if fault.KindOf(err) != want && (err != nil || want != fault.Internal) {
			t.Errorf("%s: got %v, want kind %v", name, err, want)
		}
	}
	for _, name := range []string{"owner", "keyed", "used"} {
		remove(name, fault.Conflict)
	}
	expect.FaultOf(t, fault.Conflict, "without asset services")(unknowing.RemoveBroker(t.Context(), operator, "plain"))
	expect.FaultOf(t, fault.Forbidden, "an auditor")(w.service.RemoveBroker(t.Context(), admin.Actor{Role: apikey.Auditor}, "plain"))
	remove("plain", fault.Internal)
	remove("plain", fault.NotFound)
	expect.Get(w.service.RevokeKey(t.Context(), operator, keyed))(t)
	remove("keyed", fault.Internal)
	w.broker(t, "plain") // the name may be given again
	if found, err := w.checker.Check(t.Context()); err != nil || len(found.Problems) > 0 {
		t.Errorf("check: got %v and %v, want no problem", found.Problems, err)
	}
}

// Promises: broker-names
func TestTheNameOfANewBrokerIsChecked(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "Ліс і Ко 10")
	w.broker(t, "north-wind")
	for _, c := range []struct {
		name string
		want fault.Kind
	}{
		{"<b>", fault.Invalid}, {".", fault.Invalid}, {"a\u202eb", fault.Invalid}, {"a=b", fault.Invalid}, {"a-", fault.Invalid},
		{"дім b", 0}, {"дiм", fault.Invalid}, // the last one has a Latin i
		{"Лic i Ко 10", fault.Invalid}, {"ЛІС І КО lO", fault.Conflict},
		{"north wind", fault.Conflict}, {"NORTH_WIND", fault.Conflict}, {"north-w1nd", fault.Conflict}, {"northwind", 0},
		{"АВС", 0}, {"ABC", fault.Conflict},
	} {
		_, err := w.service.CreateBroker(t.Context(), operator, adminapi.NewBroker{Name: c.name})
		if (err == nil) != (c.want == 0) || err != nil && fault.KindOf(err) != c.want {
			t.Errorf("%s: got %v, want kind %v", c.name, err, c.want)
		}
	}
	accepted := adminapi.NewBroker{Name: "north wind", Similar: true}
	expect.Get(w.service.CreateBroker(t.Context(), operator, accepted))(t)
}
