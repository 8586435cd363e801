package authsvc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/telemetry"
)

// startAdmin starts a service with an admin API, and returns where that is and
// a key for it.
func startAdmin(t *testing.T) (s *Server, address, key string) {
	t.Helper()
	return startAdminFor(t.Context(), t, Config{})
}

// startAdminFor does so until ctx is done, with some settings.
func startAdminFor(ctx context.Context, t *testing.T, c Config) (s *Server, address, key string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Store, c.Secret, c.Admin, c.Log = "file:"+filepath.Join(t.TempDir(), "tokens.db"), secret, listener, slog.New(slog.DiscardHandler)
	s, err = New(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if key, err = s.AdminKey(t.Context(), "Оператор"); err != nil {
		t.Fatal(err)
	}
	return s, "http://" + listener.Addr().String() + "/admin/v1", key
}

// ask calls the admin API and returns the answer's status and JSON.
func ask(t *testing.T, key, address, body string) (status int, answer map[string]any) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(text, &answer) != nil {
		t.Fatalf("answered %s, %v", text, err)
	}
	return resp.StatusCode, answer
}

func TestAGatewayLearnsAllThereIsToAKey(t *testing.T) {
	s, address, admin := startAdmin(t)
	client := authapi.NewClient(httpserver.InProcess(s.Handler()), newSigner(t, secret), "test")
	if status, answer := ask(t, admin, address+"/brokers", `{"data": {"name": "b"}}`); status != 201 {
		t.Fatalf("got %d %v", status, answer)
	}
	before, err := client.WatchKeys(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	status, made := ask(t, admin, address+"/keys", `{"data": {"broker": "b", "name": "n", "role": "broker", "levels": "13", "test": true, "expires": "2100-01-01T00:00:00Z",
		"limits": {"write": {"1s": 5, "1m": 100}}, "allow": ["192.0.2.0/24", "2001:db8::1"]}}`)
	if status != 201 {
		t.Fatalf("got %d %v", status, made)
	}
	key, id := made["secret"].(string), made["data"].(map[string]any)["id"].(string)
	got, err := client.VerifyKey(t.Context(), authapi.Hash(key))
	if err != nil || got.GoodFor < time.Hour {
		t.Fatalf("got %+v, %v", got, err)
	}
	got.GoodFor = 0
	want := authapi.Key{
		Identity: identity.Identity{Broker: "b", KeyID: id, Role: identity.Broker, Levels: "13t"}, Secret: 1,
		Allow:  []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")},
		Limits: authapi.Limits{"write": {"1s": 5, "1m": 100}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	changed, err := client.WatchKeys(t.Context(), before.At, time.Second)
	if err != nil || !reflect.DeepEqual(changed.Keys, []string{id}) {
		t.Errorf("got %+v, %v", changed, err)
	}
	report := authapi.ReportUsageRequest{Uses: []authapi.Use{{KeyID: id, Secret: 1, Addr: netip.MustParseAddr("192.0.2.5"), Micros: time.Now().UnixMicro()}}}
	if err := client.ReportUsage(t.Context(), report); err != nil {
		t.Error(err)
	}
	if _, shown := ask(t, admin, address+"/keys/"+id, ""); !strings.Contains(mustText(t, shown), `"from":"192.0.2.5"`) {
		t.Errorf("got %v", shown)
	}
	if err := client.ReportUsage(t.Context(), authapi.ReportUsageRequest{Counts: []authapi.Count{{KeyID: id, Day: "x"}}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a report of nothing: %v", err)
	}
}

func mustText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheInternalAPIHasNoDoorToTheAdminAPI(t *testing.T) {
	s, address, admin := startAdmin(t)
	internal := http.Client{Transport: httpserver.InProcess(s.Handler())}
	req, err := http.NewRequest(http.MethodGet, "http://authsvc/admin/v1/keys", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(admin, "")
	if resp, err := internal.Do(req); err != nil || resp.StatusCode != 404 {
		t.Errorf("got %v, %v", resp, err)
	}
	client := authapi.NewClient(call(t, strings.TrimSuffix(address, "/admin/v1")), newSigner(t, secret), "test")
	if _, err := client.VerifyKey(t.Context(), authapi.Hash("x")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the admin listener verifies keys: %v", err)
	}
}

func TestTheConsoleIsOnTheAdminListenerAlone(t *testing.T) {
	s, address, key := startAdmin(t)
	address = strings.TrimSuffix(address, "/admin/v1")
	internal := http.Client{Transport: httpserver.InProcess(s.Handler())}
	if resp, err := internal.Get("http://authsvc/console/sign-in"); err != nil || resp.StatusCode != 404 {
		t.Errorf("the internal API answers %v, %v", resp, err)
	}
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/console":         {200, "text/html; charset=utf-8"}, // after being led to the sign-in
		"/console/sign-in": {200, "text/html; charset=utf-8"},
		"/console/none":    {404, "text/html; charset=utf-8"},
		"/none":            {404, "application/json"},
		"/admin/v1/keys":   {401, "application/json"},
		"/livez":           {200, "application/json"},
	} {
		resp, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want.status || resp.Header.Get("Content-Type") != want.kind {
			t.Errorf("%s: got %d %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
		}
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).PostForm(address+"/console/sign-in", url.Values{"key": {key}})
	if err != nil || resp.StatusCode != 303 || len(resp.Cookies()) != 1 {
		t.Errorf("signing in: %v, %v", resp, err)
	}
	if status, answer := ask(t, "wrong", address+"/admin/v1/keys", ""); status != 401 {
		t.Errorf("got %d %v", status, answer)
	}
}

func TestTheAdminAPIRefusesWhoGuesses(t *testing.T) {
	_, address, key := startAdmin(t)
	for range 30 {
		if status, answer := ask(t, "wrong", address+"/keys", ""); status != 401 {
			t.Fatalf("got %d %v", status, answer)
		}
	}
	if status, answer := ask(t, key, address+"/keys", ""); status != 429 {
		t.Errorf("got %d %v", status, answer)
	}
}

func TestAdminKeyNeedsTheSecretAndAName(t *testing.T) {
	store := "file:" + filepath.Join(t.TempDir(), "tokens.db")
	c := Config{Store: store, Secret: secret, Log: slog.New(slog.DiscardHandler)}
	if _, err := AdminKey(t.Context(), c, ""); err == nil || !strings.Contains(err.Error(), "body/name") {
		t.Errorf("without a name: %v", err)
	}
	if key, err := AdminKey(t.Context(), c, "n"); err != nil || !strings.HasPrefix(key, "ark_") {
		t.Errorf("got %v", err)
	}
	c.Secret = bytes.Repeat([]byte("x"), 3)
	if _, err := AdminKey(t.Context(), c, "n"); err == nil {
		t.Error("without the secret the log would not be sealed")
	}
}

func TestTheAuditLogHasTheAddressThatTrustedProxiesTell(t *testing.T) {
	for name, c := range map[string]struct {
		trusted   []netip.Prefix
		forwarded string
		want      string
	}{
		"nobody is trusted":           {nil, "203.0.113.9", "127.0.0.1"},
		"the proxy is":                {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "203.0.113.9", "203.0.113.9"},
		"what came before it is not":  {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "198.51.100.1, 203.0.113.9", "203.0.113.9"},
		"no word of it is the proxy":  {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "", "127.0.0.1"},
		"another network is no proxy": {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "203.0.113.9", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, address, key := startAdminFor(t.Context(), t, Config{AdminProxies: c.trusted})
			req, err := http.NewRequest("POST", address+"/brokers", strings.NewReader(`{"data":{"name":"acme"}}`))
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth(key, "")
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set(httpserver.ClientHeader, "192.0.2.66") // which is not the outside's to say
			if c.forwarded != "" {
				req.Header.Set("X-Forwarded-For", c.forwarded)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != http.StatusCreated {
				t.Fatal(resp, err)
			}
			resp.Body.Close()
			_, log := ask(t, key, address+"/audit", "")
			entries := log["data"].([]any)
			if got := entries[len(entries)-1].(map[string]any)["from"]; got != c.want {
				t.Errorf("the log has %v, want %s", got, c.want)
			}
		})
	}
}

func TestTheAdminAPISaysThatItEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	_, address, key := startAdminFor(ctx, t, Config{AdminDrainDelay: time.Second})
	ready := strings.TrimSuffix(address, "/admin/v1") + "/readyz"
	if status, _ := ask(t, key, ready, ""); status != http.StatusOK {
		t.Fatalf("ready: answered %d", status)
	}
	end()
	for status := 0; status != http.StatusServiceUnavailable; {
		status, _ = ask(t, key, ready, "")
	}
	if status, _ := ask(t, key, address+"/keys", ""); status != http.StatusOK {
		t.Errorf("ending: answered %d", status)
	}
}

func TestTheAdminAPIBelievesNothingThatOnlyServicesMaySay(t *testing.T) {
	recorded := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSampler(telemetry.Sampler())), noop.NewMeterProvider(), 1)
	_, address, key := startAdminFor(t.Context(), t, Config{Telemetry: recorded})
	req, err := http.NewRequest(http.MethodGet, address+"/keys", nil)
	if err != nil {
		t.Fatal(err)
	}
	const trace = "0af7651916cd43dd8448eb211c80319c"
	req.SetBasicAuth(key, "")
	req.Header.Set(httpserver.TimeoutHeader, "0")
	req.Header.Set("Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("answered %d", resp.StatusCode)
	}
	if got := resp.Header.Get(httpserver.TraceIDHeader); got == "" || got == trace {
		t.Errorf("recorded as %q", got)
	}
}

func TestNoNameOfARequestBreaksTheAuditLog(t *testing.T) {
	_, address, key := startAdmin(t)
	for n, sent := range []string{"mine-1", "", "a\xffb", strings.Repeat("x", 63) + "я", strings.Repeat("x", 65)} {
		req, err := http.NewRequest(http.MethodPost, address+"/brokers", strings.NewReader(fmt.Sprintf(`{"data":{"name":"b%d"}}`, n)))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(key, "")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(httpserver.RequestIDHeader, sent)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got := resp.Header.Get(httpserver.RequestIDHeader)
		if resp.StatusCode != http.StatusCreated || got == "" || (got == sent) != (n == 0) {
			t.Errorf("%q: answered %d to %q", sent, resp.StatusCode, got)
		}
		_, log := ask(t, key, address+"/audit", "")
		entries := log["data"].([]any)
		if told := entries[len(entries)-1].(map[string]any)["request_id"]; told != got {
			t.Errorf("%q: the log has %q", sent, told)
		}
	}
	if _, found := ask(t, key, address+"/audit/verify", ""); len(found["data"].(map[string]any)["problems"].([]any)) > 0 {
		t.Errorf("got %v", found)
	}
}

func TestTheCheckOfTheAuditLogMayTakeLonger(t *testing.T) {
	_, address, key := startAdminFor(t.Context(), t, Config{Timeout: time.Nanosecond})
	if status, answer := ask(t, key, address+"/audit", ""); status != http.StatusServiceUnavailable {
		t.Errorf("got %d %v", status, answer)
	}
	if status, answer := ask(t, key, address+"/audit/verify", ""); status != http.StatusOK {
		t.Errorf("got %d %v", status, answer)
	}
}
