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
)

// client has connections for all that a scenario does at once, and takes
// answers as they are: compressed ones have other tags.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}}

// api is the registry as a client of one version sees it.
type api struct {
	base    string // address of the registry
	version string
}

// call is a request in the making.
type call struct {
	method, path string // path within the version
	key          string // API key
	token        string // owner token, in the header
	body         any    // a string is sent as it is, anything else as JSON
	header       map[string]string
}

// answer is what came back.
type answer struct {
	call   call
	status int
	header http.Header
	text   string
	json   map[string]any // numbers are json.Number
}

func (a api) do(t *testing.T, c call) answer {
	t.Helper()
	url := a.base + c.path
	if strings.HasPrefix(c.path, "/assets") || strings.HasPrefix(c.path, "/transfers") {
		url = a.base + "/api/" + a.version + c.path
	}
	var body io.Reader
	switch b := c.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequest(c.method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
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
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&got.json); err != nil && c.method != http.MethodHead &&
		resp.Header.Get("Content-Type") == "application/json" {
		t.Fatalf("%s %s: answered %d with no JSON object: %s", c.method, url, resp.StatusCode, text)
	}
	return got
}

// must checks the status, and what every answer has (interface document,
// General rules).
func (got answer) must(t *testing.T, status int) answer {
	t.Helper()
	if got.status != status {
		t.Fatalf("%s %s: answered %d, want %d: %s", got.call.method, got.call.path, got.status, status, got.text)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s: Content-Type is %q", got.call.method, got.call.path, kind)
	}
	if values := got.header.Values("X-Content-Type-Options"); !slices.Equal(values, []string{"nosniff"}) {
		t.Errorf("%s %s: X-Content-Type-Options is %q", got.call.method, got.call.path, values)
	}
	return got
}

// fails checks that the answer is an error body with an error at each place
// "location/name" and no other, each with a description.
func (got answer) fails(t *testing.T, status int, places ...string) answer {
	t.Helper()
	got.must(t, status)
	if got.json["status"] != "error" || len(got.json) != 2 {
		t.Fatalf("%s %s: no error body: %s", got.call.method, got.call.path, got.text)
	}
	var found []string
	for _, e := range list(got.json["errors"]) {
		o := object(e)
		if description, ok := o["description"].(string); !ok || description == "" || len(o) != 3 {
			t.Errorf("%s %s: no error object: %v", got.call.method, got.call.path, e)
		}
		found = append(found, fmt.Sprintf("%v/%v", o["location"], o["name"]))
	}
	slices.Sort(found)
	slices.Sort(places)
	if !slices.Equal(found, places) {
		t.Errorf("%s %s: errors at %q, want %q: %s", got.call.method, got.call.path, found, places, got.text)
	}
	return got
}

// data is the answer's asset.
func (got answer) data() map[string]any { return object(got.json["data"]) }

// at returns a value inside by its dotted path, nil when there is none.
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

// fields is an asset in the making, which set and without change in copies.
type fields map[string]any

// validAsset is an asset with every field of the interface document that a
// client sends.
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

// set returns the fields with the value at a dotted path replaced.
func (f fields) set(path string, value any) fields {
	return fields(object(replace(map[string]any(f), strings.Split(path, "."),
		func(o map[string]any, name string) { o[name] = value })))
}

// without returns the fields without what is at a dotted path.
func (f fields) without(path string) fields {
	return fields(object(replace(map[string]any(f), strings.Split(path, "."),
		func(o map[string]any, name string) { delete(o, name) })))
}

func replace(value any, path []string, change func(o map[string]any, name string)) any {
	if l := list(value); l != nil {
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err) // a mistake in a test
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

// data wraps fields as a body.
func data(f any) map[string]any { return map[string]any{"data": f} }

// created is an asset with its tokens.
type created struct {
	answer
	id, token string
}

// create creates an asset as broker.
func (a api) create(t *testing.T, f fields) created {
	t.Helper()
	got := a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(f)}).must(t, 201)
	return created{got, text(got.data()["id"]), text(at(got.json["access"], "token"))}
}

// patch changes an asset as broker.
func (a api) patch(t *testing.T, c created, f any) answer {
	t.Helper()
	return a.do(t, call{method: "PATCH", path: "/assets/" + c.id, key: "broker", token: c.token, body: data(f)})
}

// read reads an asset as anybody.
func (a api) read(t *testing.T, id string) answer {
	t.Helper()
	return a.do(t, call{method: "GET", path: "/assets/" + id})
}

// publish creates an asset and puts it into the feed.
func (a api) publish(t *testing.T, f fields) created {
	t.Helper()
	c := a.create(t, f)
	c.answer = a.patch(t, c, fields{"status": "pending"}).must(t, 200)
	return c
}
