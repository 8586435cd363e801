package e2e

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// basic returns a basic Authorization header for a text such as "key:".
func basic(text string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(text))
}

// testKeys sends valid and invalid Authorization headers (docs/contract.md, "API keys").
// Promises: keys-needed
func testKeys(t *testing.T, a api) {
	for _, c := range []struct {
		name, header string
	}{
		{"none", ""}, {"unknown", basic("nobody:")}, {"empty", basic(":")}, {"no Base64", "Basic ???"},
		{"no scheme", "broker"}, {"another scheme", "Digest username=broker"},
		{"a blank", " "}, {"the scheme alone", "Basic"}, {"very long", basic(strings.Repeat("k", 10_000) + ":")},
		{"the key as password", basic("x:broker")},
	} {
		got := a.do(t, call{method: "POST", path: "/assets", body: data(validAsset()),
			header: map[string]string{"Authorization": c.header}}).fails(t, 401, "header/Authorization")
		if got.header.Get("WWW-Authenticate") != `Basic realm="registry"` {
			t.Errorf("%s: got WWW-Authenticate %q, want Basic", c.name, got.header.Get("WWW-Authenticate"))
		}
	}
	for _, try := range []struct {
		name, header string
	}{
		{"an empty password", basic("broker:")}, {"any password", basic("broker:x")}, {"no colon", basic("broker")},
		{"lower case", strings.Replace(basic("broker:"), "Basic", "basic", 1)},
		{"a bearer", "Bearer broker"}, {"no padding", strings.TrimRight(basic("broker:"), "=")},
	} {
		got := a.do(t, call{method: "POST", path: "/assets", body: data(validAsset()),
			header: map[string]string{"Authorization": try.header}})
		if got.status != 201 {
			t.Errorf("%s: got %d %s, want 201", try.name, got.status, got.text)
		}
	}
}

// testTokens sends owner tokens in the query, the header and the body, alone and together. The token in the query
// counts first, then the token in the header (docs/contract.md, "Owner tokens").
// Promises: owner-token
func testTokens(t *testing.T, a api) {
	c, other := a.create(t, validAsset()), a.create(t, validAsset())
	attempt := func(key, query, header, body string) int {
		t.Helper()
		b := data(fields{"description": "tried with " + fmt.Sprint(len(query), len(header), len(body), time.Now())})
		if body != "" {
			b["access"] = fields{"token": body}
		}
		got := a.do(t, call{method: "PATCH", path: "/assets/" + c.id + "?acc_token=" + query, key: key, token: header,
			body: b})
		if got.status != 200 {
			got.fails(t, 403, "body/data")
			if want := "Can't update asset in current (draft) status"; !strings.Contains(got.text, want) {
				t.Errorf("got %s, want it to say %q", got.text, want)
			}
		}
		return got.status
	}
	for _, try := range []struct {
		name                     string
		key, query, header, body string
		want                     int
	}{
		{"in the query", "broker", c.token, "", "", 200},
		{"in the header", "broker", "", c.token, "", 200},
		{"in the body", "broker", "", "", c.token, 200},
		{"without a token", "broker", "", "", "", 403},
		{"the query wins over the header", "broker", c.token, "wrong", "wrong", 200},
		{"a wrong token in the query wins too", "broker", "wrong", c.token, c.token, 403},
		{"the header wins over the body", "broker", "", c.token, "wrong", 200},
		{"a wrong token in the header wins too", "broker", "", "wrong", c.token, 403},
		{"a token of another asset", "broker", other.token, "", "", 403},
		{"a token in capitals", "broker", strings.ToUpper(c.token), "", "", 403},
		{"the transfer token", "broker", text(at(c.json["access"], "transfer")), "", "", 403},
		{"another broker with the token", "broker3", c.token, "", "", 403},
		{"another broker without", "broker3", "", "", "", 403},
	} {
		if got := attempt(try.key, try.query, try.header, try.body); got != try.want {
			t.Errorf("%s: got %d, want %d", try.name, got, try.want)
		}
	}
	got := a.do(t, call{method: "PATCH", path: "/assets/" + c.id + "?acc_token=" + c.token + "&opt_pretty=1",
		key: "broker", body: data(fields{})}).must(t, 200)
	if strings.Contains(got.text, c.token) {
		t.Error("got the token in the answer, want it left out")
	}
}

// testAccreditation creates assets with keys of each level. Only some levels permit creations (docs/contract.md,
// "Accreditation").
func testAccreditation(t *testing.T, a api) {
	post := func(key string, f fields) answer {
		return a.do(t, call{method: "POST", path: "/assets", key: key, body: data(f)})
	}
	test := validAsset().set("mode", "test")
	for _, key := range []string{"broker", "broker3"} {
		post(key, validAsset()).must(t, 201)
		post(key, test).must(t, 201)
	}
	for _, key := range []string{"broker1", "broker2", "broker4", "broker1t"} {
		got := post(key, validAsset()).fails(t, 403, "body/accreditation")
		if !strings.Contains(got.text, "Broker Accreditation level does not permit asset creation") {
			t.Errorf("key %s: got %s, want it to name the accreditation", key, got.text)
		}
	}
	post("broker3t", validAsset()).fails(t, 403, "body/mode")
	got := post("broker3t", test).must(t, 201)
	if title := text(got.data()["title"]); !strings.HasPrefix(title, "[ТЕСТУВАННЯ] ") {
		t.Errorf("got the title %q for a test asset, want the prefix [ТЕСТУВАННЯ]", title)
	}
	for _, key := range []string{"concierge", "administrator"} {
		post(key, validAsset()).fails(t, 403, "url/permission")
	}
}

// testClaims sends headers that the gateway must not believe from a client: headers that the services send to each
// other, and headers of proxies. It also sends two keys in one request, which must be refused.
func testClaims(t *testing.T, a api) {
	claims := map[string]string{
		"X-Registry-Identity":   "eyJhbGciOiJub25lIn0.eyJzdWIiOiJicm9rZXIiLCJyb2xlIjoiYnJva2VyIn0.",
		"X-Registry-Base-Url":   "https://evil.example",
		"X-Registry-Timeout-Ms": "1", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https",
		"Forwarded": "host=evil.example",
	}
	a.do(t, call{method: "POST", path: "/assets", body: data(validAsset()), header: claims}).
		fails(t, 401, "header/Authorization")
	got := a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(validAsset()), header: claims}).
		must(t, 201)
	if !strings.HasPrefix(got.header.Get("Location"), a.base+"/") {
		t.Errorf("got Location %q, want it at %s", got.header.Get("Location"), a.base)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	twice := "Authorization: " + basic("broker:") + "\r\n"
	fmt.Fprintf(conn,
		"POST /api/2.5/assets HTTP/1.1\r\nHost: x\r\n%s%sContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		twice, twice)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 401 {
		t.Errorf("got %v, %v for two Authorization headers, want 401", resp, err)
	}
}

// testTestOnly changes a test asset with a test-only key. The administrator then makes it a real asset, and the
// same changes must be refused.
// Promises: test-only
func testTestOnly(t *testing.T, a api) {
	got := a.do(t, call{method: "POST", path: "/assets", key: "broker3t",
		body: data(validAsset().set("mode", "test"))}).must(t, 201)
	c := created{got, text(got.data()["id"]), text(at(got.json["access"], "token"))}
	path, item := "/assets/"+c.id, c.of("items")+"/"+text(at(got.data(), "items.0.id"))
	writes := []call{
		{method: "PATCH", path: path, body: data(fields{"title_en": "x"})},
		{method: "PATCH", path: item, body: data(fields{"quantity": 2})},
		{method: "POST", path: c.of("decisions"), body: data(fields{"decisionDate": "2026-11-21", "decisionID": "1"})},
		{method: "PUT", path: path, body: data(validAsset().set("items.0.id", at(got.data(), "items.0.id")))},
	}
	for _, w := range writes {
		w.key, w.token = "broker3t", c.token
		if got := a.do(t, w); got.status != 200 && got.status != 201 {
			t.Errorf("%s %s in test mode: got %d %s", w.method, w.path, got.status, got.text)
		}
	}
	before := a.do(t, call{method: "PATCH", path: path, key: "administrator", body: data(fields{"mode": nil})}).
		must(t, 200)
	for _, w := range writes {
		w.key, w.token = "broker3t", c.token
		a.do(t, w).fails(t, 403, "url/permission").says(t, "Forbidden: this API key is test-only (level t)")
	}
	if after := a.read(t, c.id).must(t, 200); after.text != before.text {
		t.Errorf("got %s after the refusals, want %s", after.text, before.text)
	}
}
