package httpapi

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
	"asset-registry/shared/translog/prooftest"
)

// logged is a service with a public log. The log grows and is signed only when the test calls sign.
type logged struct {
	service
	writer *publiclog.Writer
	policy *translog.Policy
	memory Memory
}

// zone is the time zone of the service. It is not UTC, to show that the log does not depend on it.
var zone = time.FixedZone("", 2*60*60)

func newLogged(t *testing.T) logged {
	t.Helper()
	store, signer := newStore(t, time.Now), newSigner(t)
	key := expect.Get(translog.NewKey(translog.ForLog, "registry.example/log", bytes.Repeat([]byte{7}, 32)))(t)
	policy := expect.Get(translog.LogPolicy(key.Public()))(t)
	engine := httpserver.NewEngine(httpserver.Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Minute})
	rules := asset.Rules{Types: []string{"bounce"}, Zone: zone}
	assets := registry.New(store, tokens{}, rules, time.Now).WithLog(publiclog.NewReader(store))
	m := NewMemory(1 << 30)
	api := New(assets, zone, 1<<20, m)
	api.Route(engine, signer)
	api.RouteLog(engine, signer, fakeLog{}, func(context.Context) string { return "registry.example/log" })
	api.RouteFeed(engine, signer, nil, nil)
	writer := publiclog.NewWriter(store, store, publiclog.Options{Keys: []translog.Key{key}})
	return logged{service{engine, signer}, writer, policy, m}
}

// sign adds all changes to the log and signs it.
func (s logged) sign(t *testing.T) {
	t.Helper()
	for more := true; more; {
		var err error
		more, _, err = s.writer.Extend(t.Context())
		expect.OK(t, err)
	}
	if won, err := s.writer.Sign(t.Context()); err != nil || !won {
		t.Fatalf("sign: got %v, %v; want true", won, err)
	}
}

// verify makes a proof file from an answer, as docs/log.md describes, and verifies it.
func (s logged) verify(t *testing.T, answer []byte) (leaf translog.Leaf, asset string) {
	t.Helper()
	proof, evidence, err := prooftest.Decode(answer)
	expect.FatalIf(t, err != nil, "%v in %s", err, answer)
	file := expect.Get(translog.ParseProof(proof.Encode()))(t)
	leaf, _, _, err = file.VerifyAsset(s.policy)
	expect.ErrorIf(t, err != nil, "got %v for %s, want a proof that verifies", err, answer)
	return leaf, string(evidence.Asset)
}

func TestAPublicRevisionHasAProofThatVerifies(t *testing.T) {
	s := newLogged(t)
	path := s.published(t)
	s.do(t, exchange{"GET", path + "/proof", "", "", "", 503, `"location":"url","name":"revision"`})
	s.sign(t)
	first := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.String()
	s.do(t, exchange{"PATCH", path, identity.Broker, "token", `{"data":{"items":[{"quantity":240.50}]}}`, 200, ""})
	pending := s.do(t, exchange{"GET", path + "/proof", "", "", "", 503, "The newest checkpoint of the log does not cover"})
	expect.Equal(t, pending.Header().Get("Retry-After"), "1", "Retry-After")
	s.sign(t)
	second := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.String()
	s.do(t, exchange{"PATCH", path, identity.Administrator, "", `{"data":{"mode":"test"}}`, 200, ""})
	s.sign(t)
	for _, c := range []struct {
		query    string
		kind     translog.Kind
		revision int64
		shown    string
	}{
		{"?revision=2", translog.Publish, 2, first},
		{"?revision=3", translog.Change, 3, second},
		{"?revision=4", translog.Withdraw, 4, ""},
		{"?revision=", translog.Withdraw, 4, ""},
		{"", translog.Withdraw, 4, ""},
	} {
		for _, version := range []string{"2.4", "2.5"} {
			at := strings.Replace(path, "2.5", version, 1) + "/proof" + c.query
			answer := s.do(t, exchange{"GET", at, "", "", "", 200, `{"data":{"index":`})
			leaf, shown := s.verify(t, answer.Body.Bytes())
			if leaf.Kind != c.kind || leaf.Revision != c.revision {
				t.Errorf("%s: got a %s of revision %d, want a %s of %d", at, leaf.Kind, leaf.Revision, c.kind, c.revision)
			}
			if c.shown != "" && !sameJSON(t, `{"data":`+shown+`}`, c.shown) {
				t.Errorf("%s: got %s, want the asset as version 2.5 showed it: %s", at, shown, c.shown)
			}
			for header, want := range map[string]string{"Cache-Control": "no-cache", "ETag": "",
				"Content-Type": "application/json"} {
				if got := answer.Header().Get(header); got != want {
					t.Errorf("%s: got %s %q, want %q", at, header, got, want)
				}
			}
			head := s.do(t, exchange{"HEAD", at, "", "", "", 200, ""})
			expect.Equal(t, head.Header().Get("Content-Length"), answer.Header().Get("Content-Length"),
				"HEAD %s, Content-Length", at)
			expect.Equal(t, head.Body.Len(), 0, "HEAD %s, a body of, bytes", at)
		}
	}
	s.do(t, exchange{"GET", path + "/proof?opt_jsonp=f&opt_pretty=1", "", "", "", 200, "f({\n    \"data\": {\n"})
}

// sameJSON reports whether two texts are the same JSON value. Numbers must be written in the same way.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	first, err1 := translog.Canonical([]byte(a))
	second, err2 := translog.Canonical([]byte(b))
	expect.FatalIf(t, err1 != nil || err2 != nil, "got %v and %v, want two JSON objects", err1, err2)
	return bytes.Equal(first, second)
}

func TestAProofIsRefused(t *testing.T) {
	s, without := newLogged(t), newService(t)
	path := s.published(t)
	s.sign(t)
	for _, c := range []struct {
		at     string
		status int
		name   string
	}{
		{path + "/proof?revision=9223372036854775807", 404, "revision"},
		{path + "/proof?revision=99999999999999999999", 404, "revision"},
		{path + "/proof?revision=0", 400, "revision"},
		{path + "/proof?revision=-1", 400, "revision"},
		{path + "/proof?revision=-99999999999999999999", 400, "revision"},
		{path + "/proof?revision=%2B1", 400, "revision"},
		{path + "/proof?revision=1.0", 400, "revision"},
		{path + "/proof?revision=x", 400, "revision"},
		{"/api/2.5/assets/" + strings.Repeat("0", 32) + "/proof", 404, "asset_id"},
		{"/api/2.5/assets/x/proof?revision=1", 404, "asset_id"},
	} {
		s.do(t, exchange{"GET", c.at, "", "", "", c.status, `{"location":"url","name":"` + c.name + `"`})
		if places, held := s.memory.Places.Used(), s.memory.Work.Used(); places != 0 || held != 0 {
			t.Errorf("%s: got %d places and %d bytes held after the answer, want 0", c.at, places, held)
		}
	}
	s.do(t, exchange{"GET", path + "/proof?%zz", "", "", "", 400, `"name":"query"`})
	s.do(t, exchange{"POST", path + "/proof", identity.Broker, "", "{}", 404, "method_not_allowed"})
	without.do(t, exchange{"GET", without.published(t) + "/proof", "", "", "", 404, `"name":"not_found"`})
}
