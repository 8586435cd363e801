package openapi

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"asset-registry/deploy/test/rig/described"
	"asset-registry/shared/routes"
)

// request is one request to send.
type request struct {
	method, path string // the path with its query
	header       map[string]string
	body         []byte // nil if there is no body
}

// operation is one operation of a version's document.
type operation struct {
	version, method, path string
	isBeside              bool // whether its path is outside the API versions
	*openapi3.Operation
}

// operationsOf returns every operation of every version, in a fixed order.
func operationsOf(documents described.Versions) (all []operation) {
	for _, version := range slices.Sorted(maps.Keys(documents)) {
		if _, public := routes.FindVersion(version); !public {
			continue
		}
		paths := documents[version].Spec.Paths
		for _, path := range paths.InMatchingOrder() {
			item := paths.Value(path)
			methods := item.Operations()
			for _, method := range slices.Sorted(maps.Keys(methods)) {
				all = append(all, operation{version, method, path, item.Servers[0].URL == "/", methods[method]})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b operation) int { return strings.Compare(a.path, b.path) })
	return all
}

// inCurrent returns the operations of the current version. The other versions have the same operations.
func inCurrent(documents described.Versions) []operation {
	return operationsOf(described.Versions{routes.Current: documents[routes.Current]})
}

// place is an existing object, with the key and tokens of its owner.
type place struct {
	id, part, transfer string // ids of an asset, of a part of it, and of a transfer
	partKind           string // segment of the part's path that names its kind
	key, token         string
	transferToken      string // transfer token of the asset
	pending            bool   // whether the asset is in the state pending
	tag                string
	file               string // name of a segment of the newest snapshot
	stored             string // id of a stored file of the broker, never of a removed one; "" if there may be none
	webhook            string // id of a webhook of the broker; "" if there may be none
}

// keys are the API keys that requests use. With "", a request has no key.
var keys = []string{"broker", "broker", "broker3", "concierge", "administrator", "broker1", "broker3t", "nobody", ""}

// requestOf returns a random request of an operation, valid or not, about one of the places.
func requestOf(t *rapid.T, o operation, places []place) request {
	p := rapid.SampledFrom(suitable(o, places)).Draw(t, "place")
	if o.isBeside {
		p.file = p.stored
	}
	r := request{method: methodOf(t, o), path: o.prefix() + fill(t, o.path, p), header: map[string]string{}}
	query := url.Values{}
	for _, ref := range o.Parameters {
		param := ref.Value
		if rapid.IntRange(0, 3).Draw(t, "parameter") > 0 {
			continue
		}
		value := parameter(t, param, p)
		switch param.In {
		case "query":
			query.Set(param.Name, value)
		case "header":
			r.header[param.Name] = value
		case "cookie":
			r.header["Cookie"] = param.Name + "=" + url.QueryEscape(value)
		}
	}
	if len(query) > 0 {
		r.path += "?" + query.Encode()
	}
	if accept := rapid.SampledFrom(append([]string{""}, mediaOf(o)...)).Draw(t, "accept"); accept != "" {
		r.header["Accept"] = accept
	}
	if key := rapid.SampledFrom(append([]string{p.key, p.key, p.key}, keys...)).Draw(t, "key"); key != "" {
		r.header["Authorization"] = basic(key)
	}
	if o.RequestBody != nil {
		if rapid.IntRange(0, 4).Draw(t, "with token") > 0 {
			r.header["X-Access-Token"] = p.token
		}
		if o.RequestBody.Value.Content.Get("application/json") == nil || rapid.IntRange(0, 9).Draw(t, "form") == 0 {
			r.body, r.header["Content-Type"] = form(t)
			return r
		}
		r.body = body(t, o.RequestBody.Value)
		r.header["Content-Type"] = rapid.SampledFrom([]string{
			"application/json", "application/json", "application/json", "application/json; charset=utf-8", "text/plain",
		}).Draw(t, "content type")
	}
	return r
}

// form returns a random form with a file, either correct or with one fault.
func form(t *rapid.T) (body []byte, contentType string) {
	const head = "--b\r\nContent-Disposition: form-data; name="
	parts := rapid.SampledFrom([]string{
		head + "\"file\"; filename=\"a.txt\"\r\n\r\n" + rapid.StringN(0, 20, -1).Draw(t, "content") + "\r\n",
		head + "\"file\"; filename=\"\"\r\n\r\nx\r\n", head + "\"other\"\r\n\r\nx\r\n", "", head,
	}).Draw(t, "part")
	data := rapid.SampledFrom([]string{"", head + "\"data\"\r\n\r\n{\"documentType\":\"notice\"}\r\n",
		head + "\"data\"\r\n\r\n{\r\n", head + "\"documentType\"\r\n\r\nnotice\r\n"}).Draw(t, "data")
	return []byte(data + parts + "--b--\r\n"), rapid.SampledFrom([]string{
		"multipart/form-data; boundary=b", "multipart/form-data; boundary=b", "multipart/form-data", "text/plain",
	}).Draw(t, "content type")
}

// prefix returns the part of a path before the operation's own path.
func (o operation) prefix() string {
	if o.isBeside {
		return ""
	}
	return "/api/" + o.version
}

// mediaOf returns the media types of an operation's successful answers, in sorted order.
func mediaOf(o operation) []string {
	if ok := o.Responses.Value("200"); ok != nil {
		return slices.Sorted(maps.Keys(ok.Value.Content))
	}
	return nil
}

// methodOf returns the method of the operation. For GET, it sometimes returns HEAD.
func methodOf(t *rapid.T, o operation) string {
	if o.method == "GET" && rapid.IntRange(0, 9).Draw(t, "head") == 0 {
		return "HEAD"
	}
	return o.method
}

// suitable returns the places whose part has the kind that the operation needs. If the operation needs no part, it
// returns all places.
func suitable(o operation, places []place) []place {
	fit := slices.DeleteFunc(slices.Clone(places), func(p place) bool {
		return strings.Contains(o.path, "{part}") && !strings.Contains(o.path, "/"+p.partKind+"/")
	})
	if len(fit) == 0 {
		return places
	}
	return fit
}

// fill puts ids into a path. Most of them are ids of p, and some do not exist.
func fill(t *rapid.T, path string, p place) string {
	ids := map[string]string{"{id}": p.id, "{part}": p.part, "{transfer}": p.transfer, "{file}": p.file,
		"{webhook}": p.webhook}
	path = strings.ReplaceAll(path, "{number}", rapid.SampledFrom([]string{"1", "2", "99", "0", "x"}).Draw(t, "number"))
	path = strings.ReplaceAll(path, "{side}", rapid.SampledFrom([]string{"320", "1200", "x"}).Draw(t, "side"))
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		value := ids[name]
		if rapid.IntRange(0, 9).Draw(t, "unknown id") == 0 || value == "" {
			value = rapid.SampledFrom([]string{strings.Repeat("0", 32), "x", "%20", "é", "..%2f"}).Draw(t, "id")
		}
		path = strings.ReplaceAll(path, name, value)
	}
	return path
}

// parameter chooses a random value of a parameter.
func parameter(t *rapid.T, param *openapi3.Parameter, p place) string {
	known := map[string][]string{
		"If-Match":        {p.tag, "*", `"1"`, `W/"1"`, "x"},
		"If-None-Match":   {p.tag, "*", `"1"`, "x"},
		"X-Access-Token":  {p.token, "x"},
		"acc_token":       {p.token, "x"},
		"mode":            {"test", "_all_", "x"},
		"opt_fields":      {"status,title", "*", ",", "x"},
		"offset":          {"2026-11-22T00:32:46.881553+00:00", "2026", "x", "9999-12-31"},
		"limit":           {"1", "1000", "1000000000", "0", "-1", "x"},
		"opt_jsonp":       {"show", "a.b", "1x", "x;y"},
		"revision":        {"1", "2", "3", "1000000", "0", "-1", "x"},
		"SERVER_ID":       {"x"},
		"Range":           {"bytes=0-3", "bytes=-4", "bytes=4-", "bytes=99999999-", "bytes=0-1,3-4", "x"},
		"If-Range":        {p.tag, "x"},
		"wait":            {"0", "-1", "x"}, // with larger values, the test would only wait longer
		"Prefer":          {"wait=0", `respond-async, wait="0"`, "wait", "x"},
		"Last-Event-ID":   {"2026-11-22T00:32:46.881553+00:00", "x", "9999-12-31"},
		"Idempotency-Key": {"k1", "k2", strings.Repeat("k", 255), strings.Repeat("k", 256), "é"},
	}
	if values := known[param.Name]; values != nil {
		return rapid.SampledFrom(values).Draw(t, param.Name)
	}
	return rapid.SampledFrom([]string{"", "1", "x", "так"}).Draw(t, param.Name)
}

// body returns a random body: one that the document permits, one with a single fault, or text that is not JSON.
func body(t *rapid.T, of *openapi3.RequestBody) []byte {
	value := valueOf(t, of.Content.Get("application/json").Schema.Value, 0)
	switch rapid.IntRange(0, 9).Draw(t, "body") {
	case 0:
		return []byte(rapid.SampledFrom([]string{
			"", "{", "[]", `"x"`, "null", `{"data":{}}{}`, `{"data":{"a":1,"a":2}}`, "\xff", `{"data":[]}`, `{"data":null}`,
			strings.Repeat(`{"data":`, 40) + "1" + strings.Repeat("}", 40),
		}).Draw(t, "raw"))
	case 1, 2, 3:
		value = spoiled(t, value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode %v: %v", value, err)
	}
	return text
}
