package openapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/clients"
	"asset-registry/deploy/test/rig/described"
	"asset-registry/shared/testing/expect"
)

// framing are texts to send after the path of a request, so that the HTTP server itself answers with the given
// status.
var framing = []struct {
	status int
	text   string
}{
	{400, "HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked"},
	{417, "HTTP/1.1\r\nHost: x\r\nExpect: x\r\nContent-Length: 0"},
	{431, "HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 40<<10)},
	{501, "HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip"},
	{505, "HTTP/3.0\r\nHost: x"},
}

// provoke makes the registry answer each operation with every status that needs neither an outage nor a rate limit.
func provoke(t *testing.T, r *registry) {
	t.Helper()
	for _, o := range inCurrent(r.documents) {
		places := expect.Get(r.furnish(t.Context()))(t)
		receiveStreams(t, r, o)
		p := published(o, places)
		if strings.HasSuffix(o.path, "related_processes/{part}") {
			p.part = addProcess(t, r, p)
		}
		if strings.Contains(o.path, "{webhook}") {
			p.webhook = newID(t, r, webhooks, p.key, webhook)
		}
		if o.OperationID == "proveAsset" {
			awaitProof(t, r, p.pathOf(o))
		}
		asked := aboutFiles(t, r, o)
		if len(asked) == 0 {
			asked = append(refused(o, p), succeeding(t, r, o, p)...)
		}
		for _, q := range asked {
			if o.Responses.Status(q.status) == nil || unseen[fmt.Sprint(o.OperationID, " ", q.status)] != "" {
				continue
			}
			if got, err := r.send(t.Context(), q.request); err != nil || got.status != q.status {
				t.Errorf("%s %s %v: got %d %.300s, %v, want %d", q.method, q.path, q.header, got.status, got.body, err, q.status)
			}
		}
		for _, f := range framing {
			onWire(t, r, o.method, p.pathOf(o), f.text, f.status)
		}
	}
}

// receiveStreams asks for each kind of stream with which an operation can answer.
func receiveStreams(t *testing.T, r *registry, o operation) {
	t.Helper()
	for _, media := range mediaOf(o) {
		if !described.IsStream(media) {
			continue
		}
		q := request{method: o.method, path: place{}.pathOf(o), header: map[string]string{"Accept": media}}
		got, err := r.send(t.Context(), q)
		if is := got.header.Get("Content-Type"); err != nil || is != media || len(got.body) == 0 {
			t.Errorf("%s with Accept: %s: got %q, %v, body %.300q, want a stream", q.path, media, is, err, got.body)
		}
	}
}

// awaitProof waits until the newest checkpoint covers the newest change of an asset.
func awaitProof(t *testing.T, r *registry, path string) {
	t.Helper()
	awaitNot(t, r, path, uncovered)
}

// awaitSearch waits until the search service has its index.
func awaitSearch(t *testing.T, r *registry) {
	t.Helper()
	awaitNot(t, r, "/api/2.5/search", http.StatusServiceUnavailable)
}

// awaitNot repeats a GET until its status differs from the given one.
func awaitNot(t *testing.T, r *registry, path string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	for {
		got := expect.Get(r.send(ctx, request{method: http.MethodGet, path: path}))(t)
		if got.status != status {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// exhaust sends requests of each operation until the rate limits refuse them.
func exhaust(t *testing.T, r *registry) {
	t.Helper()
	for _, o := range inCurrent(r.documents) {
		if o.Responses.Value("429") == nil {
			continue
		}
		q := request{method: o.method, path: place{id: strings.Repeat("0", 32), part: "x", transfer: "x", file: "x", webhook: "x", stored: "x"}.pathOf(o)}
		q.header = map[string]string{"Authorization": basic("nobody")}
		for range 3 {
			if _, err := r.send(t.Context(), q); err != nil {
				t.Error(err)
			}
		}
	}
}

// expected is a request and the status that its answer must have.
type expected struct {
	request
	status int
}

// published returns a place for an operation: the published asset of "broker", with a part of the kind that the
// operation uses.
func published(o operation, places []place) place {
	pending := places[slices.IndexFunc(places, func(p place) bool { return p.key == "broker" && p.pending })]
	for _, p := range places {
		if p.id == pending.id && p.partKind != "" && strings.Contains(o.path, "/"+p.partKind+"/{part}") {
			return p
		}
	}
	return pending
}

func (p place) pathOf(o operation) string {
	if o.isBeside {
		p.file = p.stored
	}
	return o.prefix() + strings.NewReplacer("{id}", p.id, "{part}", p.part, "{transfer}", p.transfer, "{number}", "1",
		"{file}", p.file, "{webhook}", p.webhook, "{side}", "320").Replace(o.path)
}

// requestTo returns a request of an operation as the owner of p would send it.
func requestTo(o operation, p place) request {
	q := request{method: o.method, path: p.pathOf(o), header: map[string]string{
		"Authorization": basic(p.key), "X-Access-Token": p.token,
	}}
	if strings.Contains(o.path, "related_processes") {
		q.header["Authorization"] = basic("concierge")
	}
	if o.RequestBody != nil {
		q.header["Content-Type"], q.body = "application/json", []byte(`{"data":{}}`)
	}
	if o.RequestBody != nil && o.RequestBody.Value.Content.Get("application/json") == nil {
		q.header["Content-Type"], q.body = fileForm("content")
	}
	return q
}

// refused returns requests that the registry must refuse, each for a different reason.
func refused(o operation, p place) (all []expected) {
	add := func(status int, change func(*request)) {
		q := requestTo(o, p)
		change(&q)
		all = append(all, expected{q, status})
	}
	add(401, func(q *request) { q.header["Authorization"] = basic("nobody") })
	add(404, func(q *request) {
		q.path = place{id: strings.Repeat("0", 32), part: p.part, transfer: "x", file: "x", webhook: "x"}.pathOf(o)
		if !strings.Contains(o.path, "{") {
			q.path += "?offset=x"
		}
	})
	add(412, func(q *request) {
		q.header["Cookie"] = "SERVER_ID=x"
		q.header["If-Match"] = `"1"`
	})
	add(413, func(q *request) { q.body = []byte(`{"data":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`) })
	add(415, func(q *request) { q.header["Content-Type"] = "text/plain" })
	add(403, func(q *request) {
		q.header["Authorization"], q.header["X-Access-Token"] = basic("broker1"), "x"
		if o.OperationID == "createTransfer" || strings.HasPrefix(o.path, "/webhooks") {
			q.header["Authorization"] = basic("concierge")
		}
		if o.OperationID == "createAsset" {
			q.body = []byte(clients.Creation)
		}
		if o.OperationID == "takeOver" {
			q.body = []byte(`{"data":{"id":"x","transfer":"x"}}`)
		}
		if o.OperationID == "recoverAsset" {
			q.body = []byte(`{"data":{"reason":"x"}}`)
		}
	})
	return all
}

// succeeding returns requests that succeed, and requests that are answered with 304 or 302.
func succeeding(t *testing.T, r *registry, o operation, p place) (all []expected) {
	t.Helper()
	q := requestTo(o, p)
	status := http.StatusOK
	switch {
	case o.Responses.Status(http.StatusCreated) != nil:
		status = http.StatusCreated
	case o.Responses.Status(http.StatusNoContent) != nil:
		status = http.StatusNoContent
	}
	if o.RequestBody != nil {
		q.body = exampleOf(t, o)
	}
	switch o.OperationID {
	case "eraseRevision", "recoverAsset":
		q.header["Authorization"] = basic("administrator")
	case "removeAsset":
		draft, _ := newDraft(t, r)
		q.path, q.header["X-Access-Token"] = draft.pathOf(o), draft.token
	case "createAsset":
		again, other := newReferenced(t, r)
		all = append(all, expected{repeatRemoved(t, r), http.StatusGone}, expected{again, http.StatusOK},
			expected{other, http.StatusConflict})
	}
	if o.OperationID == "takeOver" {
		q.header["Authorization"] = basic("broker3")
		q.body = fmt.Appendf(nil, `{"data":{"id":%q,"transfer":%q}}`, newTransfer(t, r), p.transferToken)
	}
	all = append(all, expected{q, status})
	if o.Responses.Status(http.StatusNotModified) != nil {
		unchanged := q
		unchanged.header = map[string]string{"If-None-Match": "*"}
		all = append(all, expected{unchanged, http.StatusNotModified})
	}
	for asked, status := range map[string]int{
		"bytes=0-3": http.StatusPartialContent, "bytes=0-1,3-4": http.StatusRequestedRangeNotSatisfiable,
	} {
		if o.Responses.Status(status) != nil {
			part := q
			part.header = map[string]string{"Range": asked}
			all = append(all, expected{part, status})
		}
	}
	if o.Responses.Status(http.StatusFound) != nil {
		q.path += "?download=prozorro"
		all = append(all, expected{q, http.StatusFound})
	}
	return all
}

// exampleOf returns the example of a body that the document contains.
func exampleOf(t *testing.T, o operation) []byte {
	t.Helper()
	return expect.Get(json.Marshal(o.RequestBody.Value.Content.Get("application/json").Examples["short"].Value.Value))(t)
}

// newTransfer creates a transfer as "broker3", and returns its id.
func newTransfer(t *testing.T, r *registry) string {
	t.Helper()
	return newID(t, r, "/api/2.5/transfers", "broker3", `{"data":{}}`)
}

// newDraft creates a draft as "broker", with an Idempotency-Key. It returns the draft, and the request that created
// it.
func newDraft(t *testing.T, r *registry) (place, request) {
	t.Helper()
	q := request{method: http.MethodPost, path: "/api/2.5/assets", body: []byte(clients.Creation)}
	q.header = map[string]string{
		"Authorization": basic("broker"), "Content-Type": "application/json", "Idempotency-Key": rand.Text(),
	}
	got, err := r.send(t.Context(), q)
	if err != nil || got.status != http.StatusCreated {
		t.Fatalf("create: got %d %.300s, %v, want 201", got.status, got.body, err)
	}
	var c created
	expect.OK(t, json.Unmarshal(got.body, &c))
	return place{id: c.Data.ID, key: "broker", token: c.Access.Token}, q
}

// repeatRemoved removes a draft, and returns a request that repeats the draft's creation.
func repeatRemoved(t *testing.T, r *registry) request {
	t.Helper()
	draft, creation := newDraft(t, r)
	expect.Get(r.must(t.Context(), http.StatusNoContent, "DELETE", "/api/2.5/assets/"+draft.id, draft.key, draft.token,
		""))(t)
	return creation
}

// newReferenced creates an asset under a reference. It returns the same request again, and the same request with
// different fields.
func newReferenced(t *testing.T, r *registry) (again, other request) {
	t.Helper()
	_, again = newDraft(t, r)
	delete(again.header, "Idempotency-Key")
	again.header["Registry-Reference"] = rand.Text()
	if got, err := r.send(t.Context(), again); err != nil || got.status != http.StatusCreated {
		t.Fatalf("create: got %d %.300s, %v, want 201", got.status, got.body, err)
	}
	other = again
	other.body = bytes.Replace(again.body, []byte(`"title":"`), []byte(`"title":"other `), 1)
	return again, other
}

// addProcess adds a related process to an asset, and returns its id.
func addProcess(t *testing.T, r *registry, p place) string {
	t.Helper()
	return newID(t, r, "/api/2.5/assets/"+p.id+"/related_processes", "concierge", lot)
}

func newID(t *testing.T, r *registry, path, key, body string) string {
	t.Helper()
	got := expect.Get(r.must(t.Context(), http.StatusCreated, "POST", path, key, "", body))(t)
	var c created
	expect.OK(t, json.Unmarshal(got.body, &c))
	return c.Data.ID
}

// onWire sends the head of a request as raw text, and checks the status of the answer.
func onWire(t *testing.T, r *registry, method, path, rest string, status int) {
	t.Helper()
	conn := expect.Get(net.Dial("tcp", strings.TrimPrefix(r.base, "http://")))(t)
	defer conn.Close()
	expect.OK(t, conn.SetDeadline(time.Now().Add(requestTimeout)))
	expect.Get(fmt.Fprintf(conn, "%s %s %s\r\n\r\n", method, path, rest))(t)
	asked := expect.Get(http.NewRequestWithContext(t.Context(), method, r.base+path, nil))(t)
	resp, err := http.ReadResponse(bufio.NewReader(conn), asked)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return
	}
	defer resp.Body.Close()
	body := expect.Get(io.ReadAll(resp.Body))(t)
	outside := r.documents.Check(described.Exchange{Request: asked, Status: resp.StatusCode, Header: resp.Header, Body: body})
	if outside != nil || resp.StatusCode != status {
		t.Errorf("%s %s %.40s: got %d %.300s, %v, want %d", method, path, rest, resp.StatusCode, body, outside, status)
	}
}
