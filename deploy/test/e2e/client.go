package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/test/rig/described"
)

// client keeps enough idle connections for all concurrent requests of a scenario. It does not ask for compression,
// because compressed answers have different ETags.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}}

// api is one version of a registry's API.
type api struct {
	base    string // URL of the registry, without a path
	version string
}

// call is a request to send.
type call struct {
	method, path string // the method `do` adds the version to /assets, /me/, /transfers and /webhooks
	key          string // API key; "" sends none
	token        string // owner token for X-Access-Token; "" sends none
	body         any    // a string goes out unchanged, any other value as JSON
	header       map[string]string
}

// answer is a response that was read to its end.
type answer struct {
	call   call
	status int
	header http.Header
	text   string
	json   map[string]any // numbers are json.Number
}

// The method `do` sends a request. It fails the test if no answer comes, or if the JSON of the answer is malformed. It
// does not check the JSON of a compressed answer.
func (a api) do(t *testing.T, c call) answer {
	t.Helper()
	url := a.base + c.path
	inVersion := func(start string) bool { return strings.HasPrefix(c.path, start) }
	if slices.ContainsFunc([]string{"/assets", "/me/", "/transfers", "/webhooks"}, inVersion) {
		url = a.base + "/api/" + a.version + c.path
	}
	sent, body := c.encode(t)
	req, err := http.NewRequest(c.method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	c.setHeader(req)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", c.method, url, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", c.method, url, err)
	}
	got := answer{call: c, status: resp.StatusCode, header: resp.Header, text: string(text)}
	if resp.Header.Get("Content-Encoding") != "" {
		return got
	}
	checkDescribed(t, described.Exchange{
		Request: req, Sent: sent, Status: resp.StatusCode, Header: resp.Header, Body: text,
	})
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&got.json); err != nil && c.method != http.MethodHead &&
		resp.Header.Get("Content-Type") == "application/json" {
		t.Fatalf("%s %s: got %d with %s, want a JSON object", c.method, url, resp.StatusCode, text)
	}
	return got
}

// encode returns the body of the call as bytes and as a reader. Both are nil if the call has no body.
func (c call) encode(t *testing.T) ([]byte, io.Reader) {
	t.Helper()
	switch b := c.body.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(b), strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return text, bytes.NewReader(text)
	}
}

// checkDescribed fails the test if a request or its answer differs from the registry's OpenAPI document.
func checkDescribed(t *testing.T, x described.Exchange) {
	t.Helper()
	documents, err := described.Public()
	if err != nil {
		t.Fatal(err)
	}
	if err := documents.Check(x); err != nil {
		t.Errorf("%s %s: outside of the OpenAPI document: %v\nsent %.300s\ngot %d %.300s", x.Request.Method, x.Request.URL,
			err, x.Sent, x.Status, x.Body)
	}
}

// setHeader sets the headers of the call on its request.
func (c call) setHeader(req *http.Request) {
	if c.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.key+":")))
	}
	if c.token != "" {
		req.Header.Set("X-Access-Token", c.token)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
}

// The method `with` returns the call with one more header.
func (c call) with(name, value string) call {
	header := map[string]string{}
	maps.Copy(header, c.header)
	header[name] = value
	c.header = header
	return c
}

// The method `must` checks the status, and the headers that every answer must have (docs/contract.md, "Requests and
// answers"). A different status ends the test.
func (got answer) must(t *testing.T, status int) answer {
	t.Helper()
	if got.status != status {
		t.Fatalf("%s %s: got %d, want %d: %s", got.call.method, got.call.path, got.status, status, got.text)
	}
	want := "application/json"
	if status == http.StatusNoContent {
		want = ""
	}
	if kind := got.header.Get("Content-Type"); kind != want {
		t.Errorf("%s %s: got Content-Type %q, want %q", got.call.method, got.call.path, kind, want)
	}
	if values := got.header.Values("X-Content-Type-Options"); !slices.Equal(values, []string{"nosniff"}) {
		t.Errorf("%s %s: got X-Content-Type-Options %q, want nosniff", got.call.method, got.call.path, values)
	}
	return got
}

// fails checks the status and the errors in the body. There must be one error with a description for each of the
// given places ("location/name"), and no other error.
func (got answer) fails(t *testing.T, status int, places ...string) answer {
	t.Helper()
	got.must(t, status)
	if got.json["status"] != "error" || len(got.json) != 2 {
		t.Fatalf("%s %s: got %s, want an error body", got.call.method, got.call.path, got.text)
	}
	var found []string
	for _, e := range list(got.json["errors"]) {
		o := object(e)
		if description, ok := o["description"].(string); !ok || description == "" || len(o) != 3 {
			t.Errorf("%s %s: got %v, want a location, a name and a description", got.call.method, got.call.path, e)
		}
		found = append(found, fmt.Sprintf("%v/%v", o["location"], o["name"]))
	}
	slices.Sort(found)
	slices.Sort(places)
	if !slices.Equal(found, places) {
		t.Errorf("%s %s: got errors at %q, want %q: %s", got.call.method, got.call.path, found, places, got.text)
	}
	return got
}

// data returns the JSON member "data" of the answer, or nil if the member is not an object.
func (got answer) data() map[string]any { return object(got.json["data"]) }

// The function `at` returns the value at a dotted path, for example "items.0.id". It returns nil if the path leads to
// nothing.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		if i, err := strconv.Atoi(name); err == nil && list(value) != nil {
			if i >= len(list(value)) {
				return nil
			}
			value = list(value)[i]
			continue
		}
		value = object(value)[name]
	}
	return value
}

func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

func list(value any) []any {
	l, _ := value.([]any)
	return l
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// fields is the data of a request. Its methods return a changed copy.
type fields map[string]any

// validAsset returns an asset in the form that a client sends, with every required field and some optional fields
// (docs/contract.md, "Asset").
func validAsset() fields {
	address := func() map[string]any {
		return map[string]any{"countryName": "Україна", "postalCode": "79000", "region": "м. Київ",
			"streetAddress": "вул. Банкова 1", "locality": "м. Київ"}
	}
	return fields{
		"assetType":   "bounce",
		"title":       "Нежитлове приміщення 240 м²",
		"description": "Опис об'єкта",
		"items": []any{map[string]any{
			"id":          "0",
			"description": "Земля для військовослужбовців",
			"classification": map[string]any{"scheme": "CAV-PS", "id": "06111000-3",
				"description": "Земельні ділянки"},
			"additionalClassifications": []any{map[string]any{"scheme": "UA-EDR", "id": "17.21.1",
				"description": "папір"}},
			"address":             address(),
			"unit":                map[string]any{"code": "code"},
			"quantity":            json.Number("5.0001"),
			"registrationDetails": map[string]any{"status": "unknown"},
		}},
		"decisions": []any{map[string]any{"decisionDate": "2026-11-20T12:00:00.000000+02:00", "decisionID": "1637-10"}},
		"assetCustodian": map[string]any{
			"name":         "Фонд",
			"identifier":   map[string]any{"scheme": "UA-EDR", "id": "00037256", "uri": "http://www.dus.gov.ua/"},
			"address":      address(),
			"contactPoint": map[string]any{"name": "Державне управління справами", "telephone": "0440000000"},
		},
	}
}

// set returns a copy in which the value at a dotted path is replaced.
func (f fields) set(path string, value any) fields {
	return fields(object(replace(map[string]any(f), strings.Split(path, "."),
		func(o map[string]any, name string) { o[name] = value })))
}

// The method `without` returns a copy without the value at a dotted path.
func (f fields) without(path string) fields {
	return fields(object(replace(map[string]any(f), strings.Split(path, "."),
		func(o map[string]any, name string) { delete(o, name) })))
}

func replace(value any, path []string, change func(o map[string]any, name string)) any {
	if l := list(value); l != nil {
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err) // the test itself has a wrong path
		}
		l = slices.Clone(l)
		l[i] = replace(l[i], path[1:], change)
		return l
	}
	o := maps.Clone(object(value))
	if o == nil {
		o = map[string]any{}
	}
	if len(path) == 1 {
		change(o, path[0])
	} else {
		o[path[0]] = replace(o[path[0]], path[1:], change)
	}
	return o
}

// equal fails the test if two values differ, and prints the differences.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// data returns the body {"data": f}.
func data(f any) map[string]any { return map[string]any{"data": f} }

// created is an asset that the test has created, with its id and owner token.
type created struct {
	answer
	id, token string
}

// create creates a draft with the key "broker".
func (a api) create(t *testing.T, f fields) created {
	t.Helper()
	got := a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(f)}).must(t, 201)
	return created{got, text(got.data()["id"]), text(at(got.json["access"], "token"))}
}

// patch changes an asset with the key "broker" and the asset's token.
func (a api) patch(t *testing.T, c created, f any) answer {
	t.Helper()
	return a.do(t, call{method: "PATCH", path: "/assets/" + c.id, key: "broker", token: c.token, body: data(f)})
}

// read reads an asset without a key.
func (a api) read(t *testing.T, id string) answer {
	t.Helper()
	return a.do(t, call{method: "GET", path: "/assets/" + id})
}

// publish creates an asset and moves it to pending, which puts it into the feed.
func (a api) publish(t *testing.T, f fields) created {
	t.Helper()
	c := a.create(t, f)
	c.answer = a.patch(t, c, fields{"status": "pending"}).must(t, 200)
	return c
}
