package described_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/described"
	"asset-registry/shared/testing/expect"
)

const (
	transfer = `{"data":{"id":"0a1b2c3d4e5f40718293a4b5c6d7e8f9","date":"2026-11-22T00:32:46.881553+00:00"}}`
	asset    = `{"data":{"id":"0a1b2c3d4e5f40718293a4b5c6d7e8f9","assetID":"UA-AR-DGF-2026-11-22-000001",` +
		`"assetType":"bounce","status":"pending","title":"x","description":"x","owner":"broker",` +
		`"date":"2026-11-22T00:32:46.881553+00:00","dateModified":"2026-11-22T00:32:46.881553+00:00",` +
		`"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":"00037256"},` +
		`"address":{"countryName":"Україна"},"contactPoint":{"name":"x","telephone":"0440000000"}}}}`
	refused = `{"status":"error","errors":[{"location":"url","name":"transfer_id","description":"Not Found"}]}`
)

// TestExchanges checks that the documents detect each kind of difference between them and an exchange.
func TestExchanges(t *testing.T) {
	documents := expect.Get(described.Public())(t)
	const (
		get, post = "GET /api/2.5/transfers/x", "POST /api/2.5/transfers"
		put       = "PUT /api/2.5/assets/0a1b2c3d4e5f40718293a4b5c6d7e8f9"
		custodian = `{"data":{"assetCustodian":{}}}`
	)
	for _, test := range []struct {
		name    string
		request string // method, path and possibly a key
		sent    string
		status  int
		header  string // a header of the answer, in addition to the content type
		body    string
		want    string // part of the error; "" if no error is expected
	}{
		{"a documented answer", get, "", 200, "", transfer, ""},
		{"a documented refusal", get, "", 404, "", refused, ""},
		{"another status", get, "", 202, "", transfer, "status is not supported"},
		{"another field", get, "", 200, "", strings.Replace(transfer, `"date"`, `"x":1,"date"`, 1), "readTransfer"},
		{"a field of another form", get, "", 200, "", strings.Replace(transfer, "2026", "26", 1), "date"},
		{"no JSON", get, "", 200, "", "x", "readTransfer"},
		{"another header", get, "", 200, "X-Other", transfer, "lacks the header X-Other"},
		{"an error at another place", get, "", 404, "", strings.Replace(refused, "transfer_id", "x", 1), "url/x"},
		{"an accepted request that is not documented", post, `{"data":{"x":1}}`, 201, "", "", "accepted request"},
		{"an accepted field without a required part", put + " owner", custodian, 200, "", asset, "accepted request"},
		{"the same of a role that does not write the field", put + " concierge", custodian, 200, "", asset, ""},
		{"an accepted path that is not documented", "GET /api/2.5/x", "", 200, "", "{}", "want an error"},
		{"a refused path", "GET /api/2.5/x", "", 404, "", refused, ""},
		{"another field of the admin API", "GET /admin/v1/brokers/x", "", 200, "", `{"data":{"x":1}}`, "readBroker"},
		{"a path of nobody", "GET /", "", 200, "", "x", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			method, path, _ := strings.Cut(test.request, " ")
			path, key, _ := strings.Cut(path, " ")
			x := described.Exchange{
				Request: httptest.NewRequest(method, path, strings.NewReader(test.sent)), Sent: []byte(test.sent),
				Status: test.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(test.body),
			}
			x.Request.Header.Set("Content-Type", "application/json")
			x.Request.SetBasicAuth(key, "")
			if test.header != "" {
				x.Header.Set(test.header, "x")
			}
			err := documents.Check(x)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// TestStreams checks that the documents detect a message that they do not describe.
func TestStreams(t *testing.T) {
	documents := expect.Get(described.Public())(t)
	const (
		offset   = "2026-11-22T00:32:46.881553+00:00"
		entry    = `{"id":"0a1b2c3d4e5f40718293a4b5c6d7e8f9","dateModified":"` + offset + `"}`
		bookmark = `{"offset":"` + offset + `"}`
		line     = `{"bookmark":` + bookmark + "}\n"
		events   = "text/event-stream"
		lines    = "application/x-ndjson"
	)
	for _, test := range []struct{ name, media, body, want string }{
		{"events", events, "retry: 1000\n\nid: " + offset + "\ndata: " + entry + "\n\n:\n\nevent: bookmark\nid: " + offset +
			"\ndata: " + bookmark + "\n\n", ""},
		{"an event that was cut off", events, ":\n\nid: " + offset + "\ndata: {", ""},
		{"an event without an id", events, "data: " + entry + "\n\n", "no id"},
		{"an event of another name", events, "event: x\nid: 1\ndata: {}\n\n", "x-events/x"},
		{"an event of other data", events, "id: 1\ndata: " + bookmark + "\n\n", "message"},
		{"an event that is no JSON", events, "id: 1\ndata: {\n\n", "no JSON"},
		{"lines", lines, entry + "\n\n" + line, ""},
		{"a line that was cut off", lines, entry + "\n{", ""},
		{"a line of other data", lines, bookmark + "\n", "message"},
		{"another media type", "text/plain", "", "text/plain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := documents.Check(described.Exchange{
				Request: httptest.NewRequest(http.MethodGet, "/api/2.5/assets", nil), Status: http.StatusOK,
				Header: http.Header{"Content-Type": {test.media}}, Body: []byte(test.body),
			})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
