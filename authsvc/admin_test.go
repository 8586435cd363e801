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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

// startAdmin starts a service with an admin API. It returns the API's address and an operator's key.
func startAdmin(t *testing.T) (s *Server, address, key string) {
	t.Helper()
	return startAdminFor(t.Context(), t, Config{})
}

// startAdminFor does the same as startAdmin, with the settings of c. The service runs until ctx is done.
func startAdminFor(ctx context.Context, t *testing.T, c Config) (s *Server, address, key string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	c.Store, c.Secrets = "file:"+filepath.Join(t.TempDir(), "tokens.db"), keyring.Ring{secret}
	c.Admin, c.Log = listener, slog.New(slog.DiscardHandler)
	s, err = New(ctx, c)
	expect.OK(t, err)
	t.Cleanup(func() { expect.Try(t, s.Close()) })
	key, err = s.AdminKey(t.Context(), "Оператор")
	expect.OK(t, err)
	return s, "http://" + listener.Addr().String() + "/admin/v1", key
}

// request calls the admin API. The argument `header` lists names and values in turn.
func request(t *testing.T, key, method, address, body string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	expect.OK(t, err)
	req.SetBasicAuth(key, "")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	expect.OK(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	expect.OK(t, err)
	return resp, text
}

// ask calls the admin API and returns the response's status and JSON. It sends a POST if body is not empty.
func ask(t *testing.T, key, address, body string) (status int, answer map[string]any) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	resp, text := request(t, key, method, address, body, "Authorization", "Bearer "+key)
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("got %s, %v; want JSON", text, err)
	}
	return resp.StatusCode, answer
}

// newest returns the newest entry of the audit log.
func newest(t *testing.T, key, address string) map[string]any {
	t.Helper()
	_, log := ask(t, key, address+"/audit", "")
	entries := log["data"].([]any)
	return entries[len(entries)-1].(map[string]any)
}

func TestAGatewayLearnsAllThereIsToAKey(t *testing.T) {
	s, address, admin := startAdmin(t)
	client := authapi.NewClient(httpserver.InProcess(s.Handler()), newSigner(t, secret), "test")
	if status, answer := ask(t, admin, address+"/brokers", `{"data": {"name": "b"}}`); status != 201 {
		t.Fatalf("create a broker: got %d %v, want 201", status, answer)
	}
	before, err := client.WatchKeys(t.Context(), "", 0)
	expect.OK(t, err)
	status, made := ask(t, admin, address+"/keys", `{"data": {
		"broker": "b", "name": "n", "role": "broker", "levels": "13", "test": true, "expires": "2100-01-01T00:00:00Z",
		"limits": {"write": {"1s": 5, "1m": 100}}, "allow": ["192.0.2.0/24", "2001:db8::1"]}}`)
	expect.FatalIf(t, status != 201, "create a key: got %d %v, want 201", status, made)
	key, id := made["secret"].(string), made["data"].(map[string]any)["id"].(string)
	got, err := client.VerifyKey(t.Context(), authapi.Hash(key))
	if err != nil || got.GoodFor < time.Hour {
		t.Fatalf("got %+v, %v; want a key valid for more than an hour", got, err)
	}
	got.GoodFor = 0
	want := authapi.Key{
		Identity: identity.Identity{Broker: "b", KeyID: id, Role: identity.Broker, Levels: "13t"}, Secret: 1,
		Allow:  []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")},
		Limits: authapi.Limits{"write": {"1s": 5, "1m": 100}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("got the lines with +, want those with -:\n%s", diff)
	}
	changed, err := client.WatchKeys(t.Context(), before.At, time.Second)
	if err != nil || !slices.Equal(changed.Keys, []string{id}) {
		t.Errorf("watch: got %+v, %v; want key %s", changed, err, id)
	}
	use := authapi.Use{KeyID: id, Secret: 1, Addr: netip.MustParseAddr("192.0.2.5"), Micros: time.Now().UnixMicro()}
	report := authapi.ReportUsageRequest{Uses: []authapi.Use{use}}
	expect.Try(t, client.ReportUsage(t.Context(), report))
	if _, shown := ask(t, admin, address+"/keys/"+id, ""); !strings.Contains(mustText(t, shown), `"from":"192.0.2.5"`) {
		t.Errorf("got %v, want a use from 192.0.2.5", shown)
	}
	malformed := authapi.ReportUsageRequest{Counts: []authapi.Count{{KeyID: id, Day: "x"}}}
	expect.Fault(t, client.ReportUsage(t.Context(), malformed), fault.Invalid, "a malformed report")
}

func mustText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	expect.OK(t, err)
	return string(text)
}

// The function `do` calls the admin API and returns the response's status and sorted errors. The form of an error is
// "location/name: description".
func do(t *testing.T, key, method, address, body string) (status int, problems []string) {
	t.Helper()
	resp, text := request(t, key, method, address, body)
	var answer struct{ Errors []fault.Detail }
	expect.OK(t, json.Unmarshal(text, &answer))
	for _, d := range answer.Errors {
		problems = append(problems, d.Location+"/"+d.Name+": "+d.Description)
	}
	slices.Sort(problems)
	return resp.StatusCode, problems
}

func TestTheAdminAPITellsEveryProblemOfARequestByField(t *testing.T) {
	_, address, key := startAdmin(t)
	if status, answer := ask(t, key, address+"/brokers", `{"data": {"name": "b"}}`); status != 201 {
		t.Fatalf("create a broker: got %d %v, want 201", status, answer)
	}
	_, made := ask(t, key, address+"/keys", `{"data": {"broker": "b", "name": "n", "role": "broker"}}`)
	of := "/keys/" + made["data"].(map[string]any)["id"].(string)
	_, before := ask(t, key, address+"/audit", "")
	const settings = `"name": 5, "role": "king", "levels": "77", "test": "yes", "expires": "soon", "colour": "blue",
		"size": null, "limits": {"write": {"1ms": 1, "1m": "many", "1h": 0}, "read": 7, "dance": {}},
		"allow": ["192.0.2.1", "nowhere", 8]`
	told := []string{
		"body/allow.1: \"nowhere\" is neither", "body/allow.2: This must be a string.", "body/colour: Rogue field",
		"body/expires: This must be a time", "body/levels: The levels", "body/limits.dance: The class of requests",
		"body/limits.read: This must be an object.", "body/limits.write.1h: A limit must be",
		"body/limits.write.1m: This must be a whole number.", "body/limits.write.1ms: \"1ms\" is no length",
		"body/name: This must be a string.", "body/role: The role must be", "body/size: Rogue field",
		"body/test: This must be true or false.",
	}
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want                     []string // how the errors begin, in order
	}{
		{
			"create a key with faults in every field", "POST", "/keys",
			`{"data": {"broker": "stranger", ` + settings + `}}`, 400,
			append([]string{told[0], told[1], "body/broker: There is no such broker"}, told[2:]...),
		},
		{"change a key with faults in every field", "PATCH", of, `{"data": {` + settings + `}}`, 400, told},
		{
			"change the broker of a key", "PATCH", of, `{"data": {"broker": "x", "levels": "9"}}`, 400,
			[]string{"body/broker: Rogue field: this call takes name, role", "body/levels: "},
		},
		{
			"make a broker's key an operator's key", "PATCH", of, `{"data": {"role": "operator", "name": ""}}`, 400,
			[]string{"body/name: This field is required.", "body/role: A key of a broker cannot"},
		},
		{
			"rotate with a malformed grace", "POST", of + "/rotate", `{"data": {"grace": "soon", "colour": 1}}`, 400,
			[]string{"body/colour: Rogue field: this call takes grace.", "body/grace: Send a length of time"},
		},
		{
			"rotate with a grace too long", "POST", of + "/rotate", `{"data": {"grace": "9999h", "colour": 1}}`, 400,
			[]string{"body/colour: ", "body/grace: The grace must be"},
		},
		{
			"revoke with an unknown field", "POST", of + "/revoke", `{"data": {"colour": 1}}`, 400,
			[]string{"body/colour: Rogue field: this call takes no fields."},
		},
		{
			"create a broker with faults in every field", "POST", "/brokers",
			`{"data": {"title": [], "contact": " x", "colour": 1}, "size": 2}`, 400,
			[]string{
				"body/colour: Rogue field", "body/contact: Only printable", "body/name: This field is required.",
				"body/size: Rogue field", "body/title: This must be a string.",
			},
		},
		{
			"create an existing broker", "POST", "/brokers", `{"data": {"name": "b", "blocked": 1}}`, 400,
			[]string{"body/blocked: This must be true", "body/name: There is a broker"},
		},
		{
			"change a broker with faults in every field", "PATCH", "/brokers/b",
			`{"data": {"title": 1, "contact": "\u0007", "name": "c"}}`, 400,
			[]string{
				"body/contact: Only printable",
				"body/name: Rogue field: this call takes title, contact, blocked, raise, raised_until.",
				"body/title: This must be a string.",
			},
		},
		{
			"a field name in uppercase", "POST", "/brokers", `{"data": {"Name": "c"}}`, 400,
			[]string{"body/Name: Rogue field", "body/name: This field is required."},
		},
		{"no data", "POST", "/brokers", `{"name": "c"}`, 400, []string{"body/data: Data not available"}},
		{"data of another type", "PATCH", "/brokers/b", `{"data": [1]}`, 400, []string{"body/data: Data not available"}},
		{
			"malformed JSON", "POST", "/brokers", `{"data": {`, 400,
			[]string{"body/data: The body is not JSON: it breaks off or has a fault near byte 10."},
		},
		{
			"text after the JSON", "POST", "/brokers", `{"data": {"name": "c"}} x`, 400,
			[]string{"body/data: The body is not JSON: it breaks off or has a fault near byte 25."},
		},
		{
			"a body that is not UTF-8", "POST", "/brokers", "{\"data\": {\"name\": \"c\xff\"}}", 400,
			[]string{"body/data: could not decode params"},
		},
		{
			"a body too long", "POST", "/brokers", `{"data": {"name": "` + strings.Repeat("x", 64<<10) + `"}}`, 413,
			[]string{"body/data: The body is too long"},
		},
		{
			"list keys with a bad limit and state", "GET", "/keys?limit=0&state=tired", "", 400,
			[]string{"querystring/limit: ", "querystring/state: The state must be one of active"},
		},
		{
			"list entries with a bad limit and start", "GET", "/audit?limit=x&after=-1", "", 400,
			[]string{"querystring/after: ", "querystring/limit: "},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, got := do(t, key, c.method, address+c.path, c.body)
			fits := status == c.status && len(got) == len(c.want)
			for i := 0; fits && i < len(got); i++ {
				fits = strings.HasPrefix(got[i], c.want[i])
			}
			expect.ErrorIf(t, !fits, "got %d %q, want %d with errors that start with %q", status, got, c.status, c.want)
		})
	}
	if _, after := ask(t, key, address+"/audit", ""); mustText(t, after) != mustText(t, before) {
		t.Errorf("got audit log %v, want %v as before", after, before)
	}
	rogues := `{"data": {"x": 1` + strings.Repeat(`,"`+strings.Repeat("y", 8)+`":1`, 10)
	for n := range 4000 {
		rogues += fmt.Sprintf(`,"a%d":1`, n)
	}
	if status, got := do(t, key, "POST", address+"/brokers", rogues+"}}"); status != 400 || len(got) > 200 {
		t.Errorf("4000 unknown fields: got %d with %d errors, want 400 with at most 200", status, len(got))
	}
}

func TestAPatchOfTheAdminAPIChangesOnlyWhatItNames(t *testing.T) {
	_, address, key := startAdmin(t)
	status, answer := ask(t, key, address+"/brokers", `{"data": {"name": "b", "title": "t", "contact": "c"}}`)
	expect.FatalIf(t, status != 201, "create a broker: got %d %v, want 201", status, answer)
	_, made := ask(t, key, address+"/keys", `{"data": {
		"broker": "b", "name": "n", "role": "broker", "levels": "13", "test": true, "expires": "2100-01-01T00:00:00Z",
		"limits": {"write": {"1s": 5}, "read": {"1s": 6}}, "allow": ["192.0.2.0/24"]}}`)
	of := "/keys/" + made["data"].(map[string]any)["id"].(string)
	for _, c := range []struct{ path, body, want string }{
		{"/brokers/b", `{"title": null}`, `"blocked":false,"contact":"c"`},
		{of, `{"name": "m"}`, `"limits":{"read":{"1s":6},"write":{"1s":5}},"modified"`},
		{of, `{"limits": {"write": {"1m": 9}}}`, `"limits":{"write":{"1m":9}},"modified"`},
		{of, `{"limits": null, "expires": null, "allow": null}`, `"levels":"13","modified"`},
		{of, `{"levels": null}`, `"name":"m","role":"broker","secrets"`},
	} {
		resp, text := request(t, key, http.MethodPatch, address+c.path, `{"data": `+c.body+`}`)
		var answer map[string]any
		err := json.Unmarshal(text, &answer)
		if got := mustText(t, answer); err != nil || resp.StatusCode != 200 || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %d %s, %v; want 200 with %s", c.body, resp.StatusCode, got, err, c.want)
		}
	}
}

// TestAnAuditorDoesNothingByTheAdminAPI tries each route that is no reading with an auditor's key.
func TestAnAuditorDoesNothingByTheAdminAPI(t *testing.T) {
	s, address, operator := startAdmin(t)
	ask(t, operator, address+"/brokers", `{"data": {"name": "b"}}`)
	_, made := ask(t, operator, address+"/keys", `{"data": {"name": "n", "role": "auditor"}}`)
	auditor, id := made["secret"].(string), made["data"].(map[string]any)["id"].(string)
	before, err := s.admin.Head(t.Context())
	expect.OK(t, err)
	acts := 0
	for _, route := range adminapi.Routes() {
		path := strings.NewReplacer(":name", "b", ":id", id, "/find", "/find?q=b").Replace(route.Pattern)
		want := http.StatusForbidden
		if route.Method == http.MethodGet {
			want = http.StatusOK
		} else {
			acts++
		}
		if resp, text := request(t, auditor, route.Method, address+path, `{"data": {}}`); resp.StatusCode != want {
			t.Errorf("%s %s: got %d %s, want %d", route.Method, path, resp.StatusCode, text, want)
		}
	}
	if after, err := s.admin.Head(t.Context()); err != nil || after != before || acts < 6 {
		t.Errorf("got head %v, %v after %d acts; want %v after at least 6", after, err, acts, before)
	}
}

func TestTheInternalAPIHasNoDoorToTheAdminAPI(t *testing.T) {
	s, address, admin := startAdmin(t)
	internal := http.Client{Transport: httpserver.InProcess(s.Handler())}
	req, err := http.NewRequest(http.MethodGet, "http://authsvc/admin/v1/keys", nil)
	expect.OK(t, err)
	req.SetBasicAuth(admin, "")
	if resp, err := internal.Do(req); err != nil || resp.StatusCode != 404 {
		t.Errorf("the internal API: got %v, %v; want 404", resp, err)
	}
	client := authapi.NewClient(call(t, strings.TrimSuffix(address, "/admin/v1")), newSigner(t, secret), "test")
	expect.FaultOf(t, fault.NotFound, "verify a key on the admin listener")(client.VerifyKey(t.Context(),
		authapi.Hash("x")))
}

func TestTheConsoleIsOnTheAdminListenerAlone(t *testing.T) {
	s, address, key := startAdmin(t)
	address = strings.TrimSuffix(address, "/admin/v1")
	internal := http.Client{Transport: httpserver.InProcess(s.Handler())}
	if resp, err := internal.Get("http://authsvc/console/sign-in"); err != nil || resp.StatusCode != 404 {
		t.Errorf("the internal API: got %v, %v; want 404", resp, err)
	}
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/console":         {200, "text/html; charset=utf-8"}, // /console redirects to /console/sign-in
		"/console/sign-in": {200, "text/html; charset=utf-8"},
		"/console/none":    {404, "text/html; charset=utf-8"},
		"/none":            {404, "application/json"},
		"/admin/v1/keys":   {401, "application/json"},
		"/livez":           {200, "application/json"},
	} {
		resp, err := http.Get(address + path)
		expect.OK(t, err)
		resp.Body.Close()
		if resp.StatusCode != want.status || resp.Header.Get("Content-Type") != want.kind {
			kind := resp.Header.Get("Content-Type")
			t.Errorf("%s: got %d %s, want %d %s", path, resp.StatusCode, kind, want.status, want.kind)
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.PostForm(address+"/console/sign-in", url.Values{"key": {key}})
	if err != nil || resp.StatusCode != 303 || len(resp.Cookies()) != 1 {
		t.Errorf("sign in: got %v, %v; want 303 with a cookie", resp, err)
	}
	if status, answer := ask(t, "wrong", address+"/admin/v1/keys", ""); status != 401 {
		t.Errorf("a wrong key: got %d %v, want 401", status, answer)
	}
}

func TestTheAdminAPIRefusesWhoGuesses(t *testing.T) {
	_, address, key := startAdmin(t)
	for range 30 {
		if status, answer := ask(t, "wrong", address+"/keys", ""); status != 401 {
			t.Fatalf("a wrong key: got %d %v, want 401", status, answer)
		}
	}
	if status, answer := ask(t, key, address+"/keys", ""); status != 429 {
		t.Errorf("after 30 wrong keys: got %d %v, want 429", status, answer)
	}
}

func TestAdminKeyNeedsTheSecretAndAName(t *testing.T) {
	store := "file:" + filepath.Join(t.TempDir(), "tokens.db")
	c := Config{Store: store, Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler)}
	expect.SaysOf(t, "body/name", "no name")(AdminKey(t.Context(), c, ""))
	if key, err := AdminKey(t.Context(), c, "n"); err != nil || !strings.HasPrefix(key, "ark_") {
		t.Errorf("got %q, %v; want a key that starts with ark_", key, err)
	}
	c.Secrets = keyring.Ring{bytes.Repeat([]byte("x"), 3)}
	expect.FailsOf(t, "a secret too short to seal the log")(AdminKey(t.Context(), c, "n"))
}

func TestTheAuditLogHasTheAddressThatTrustedProxiesTell(t *testing.T) {
	proxy := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	other := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		trusted         []netip.Prefix
		forwarded, want string
	}{
		"no proxy is trusted":               {nil, "203.0.113.9", "127.0.0.1"},
		"a trusted proxy sends one address": {proxy, "203.0.113.9", "203.0.113.9"},
		"a trusted proxy sends two":         {proxy, "198.51.100.1, 203.0.113.9", "203.0.113.9"},
		"a trusted proxy sends none":        {proxy, "", "127.0.0.1"},
		"another network is trusted":        {other, "203.0.113.9", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, address, key := startAdminFor(t.Context(), t, Config{AdminTrustedProxies: c.trusted})
			// The service ignores the first header.
			header := []string{httpserver.ClientHeader, "192.0.2.66", "X-Forwarded-For", c.forwarded}
			if c.forwarded == "" {
				header = header[:2]
			}
			resp, text := request(t, key, "POST", address+"/brokers", `{"data":{"name":"acme"}}`, header...)
			if got := newest(t, key, address)["from"]; resp.StatusCode != http.StatusCreated || got != c.want {
				t.Errorf("got %d %s from %v, want 201 from %s", resp.StatusCode, text, got, c.want)
			}
		})
	}
}

func TestTheAdminAPISaysThatItEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	_, address, key := startAdminFor(ctx, t, Config{AdminServing: httpserver.ServeOptions{DrainDelay: time.Second}})
	ready := strings.TrimSuffix(address, "/admin/v1") + "/readyz"
	if status, _ := ask(t, key, ready, ""); status != http.StatusOK {
		t.Fatalf("before the drain: got %d, want 200", status)
	}
	end()
	for status := 0; status != http.StatusServiceUnavailable; {
		status, _ = ask(t, key, ready, "")
	}
	if status, _ := ask(t, key, address+"/keys", ""); status != http.StatusOK {
		t.Errorf("during the drain: got %d, want 200", status)
	}
}

func TestTheAdminAPIBelievesNothingThatOnlyServicesMaySay(t *testing.T) {
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(telemetry.Sampler()))
	recorded := telemetry.New(tracers, noop.NewMeterProvider(), 1)
	_, address, key := startAdminFor(t.Context(), t, Config{Telemetry: recorded})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	resp, _ := request(t, key, http.MethodGet, address+"/keys", "", httpserver.TimeoutHeader, "0",
		"Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	expect.Equal(t, resp.StatusCode, http.StatusOK, "")
	if got := resp.Header.Get(httpserver.TraceIDHeader); got == "" || got == trace {
		t.Errorf("got trace id %q, want a new one", got)
	}
}

func TestNoNameOfARequestBreaksTheAuditLog(t *testing.T) {
	_, address, key := startAdmin(t)
	for n, sent := range []string{"mine-1", "", "a\xffb", strings.Repeat("x", 63) + "я", strings.Repeat("x", 65)} {
		body := fmt.Sprintf(`{"data":{"name":"b%d"}}`, n)
		resp, _ := request(t, key, http.MethodPost, address+"/brokers", body, httpserver.RequestIDHeader, sent)
		got := resp.Header.Get(httpserver.RequestIDHeader)
		if resp.StatusCode != http.StatusCreated || got == "" || (got == sent) != (n == 0) {
			t.Errorf("%q: got %d with request id %q, want 201 with the same id: %t", sent, resp.StatusCode, got, n == 0)
		}
		if told := newest(t, key, address)["request_id"]; told != got {
			t.Errorf("%q: got request id %q in the log, want %q", sent, told, got)
		}
	}
	_, found := ask(t, key, address+"/audit/verify", "")
	if problems := found["data"].(map[string]any)["problems"].([]any); len(problems) > 0 {
		t.Errorf("got problems %v, want none", problems)
	}
}

func TestTheCheckOfTheAuditLogMayTakeLonger(t *testing.T) {
	_, address, key := startAdminFor(t.Context(), t, Config{Timeout: time.Nanosecond})
	if status, answer := ask(t, key, address+"/audit", ""); status != http.StatusServiceUnavailable {
		t.Errorf("list entries: got %d %v, want 503", status, answer)
	}
	if status, answer := ask(t, key, address+"/audit/verify", ""); status != http.StatusOK {
		t.Errorf("verify the log: got %d %v, want 200", status, answer)
	}
}
