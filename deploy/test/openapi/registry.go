package openapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"asset-registry/deploy/test/rig/clients"
	"asset-registry/deploy/test/rig/described"
)

// requestTimeout limits the time of one request.
const requestTimeout = 30 * time.Second

// streamFor is how long the method `send` reads a stream.
const streamFor = 20 * time.Millisecond

// maxAnswer is the maximum number of bytes that are read from an answer.
const maxAnswer = 16 << 20

// registry is a running registry and the documents that describe it.
type registry struct {
	base      string // "http://host:port"
	client    *http.Client
	documents described.Versions
}

func newRegistry(base string) (*registry, error) {
	documents, err := described.Public()
	if err != nil {
		return nil, err
	}
	return &registry{base: base, documents: documents, client: &http.Client{
		Timeout:       requestTimeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func basic(key string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":")) }

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request. The error lists everything in the request and the answer that the document does not describe.
// If the answer is a stream, send reads it only for the time in the constant streamFor.
func (r *registry) send(ctx context.Context, q request) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, err := http.NewRequestWithContext(ctx, q.method, r.base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range q.header {
		asked.Header.Set(name, value)
	}
	resp, err := r.client.Do(asked)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	isStream := described.IsStream(resp.Header.Get("Content-Type"))
	if isStream {
		defer time.AfterFunc(streamFor, cancel).Stop()
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && !(isStream && errors.Is(err, context.Canceled)) {
		return answer{}, err
	}
	got := answer{resp.StatusCode, resp.Header, body}
	return got, r.documents.Check(described.Exchange{
		Request: asked, Sent: q.body, Status: got.status, Header: got.header, Body: got.body,
	})
}

// The method `must` sends a request whose answer must have the given status. It returns the answer.
func (r *registry) must(ctx context.Context, status int, method, path, key, token, body string) (answer, error) {
	q := request{method: method, path: path, header: map[string]string{}}
	if body != "" {
		q.body, q.header["Content-Type"] = []byte(body), "application/json"
	}
	if key != "" {
		q.header["Authorization"] = basic(key)
	}
	if token != "" {
		q.header["X-Access-Token"] = token
	}
	got, err := r.send(ctx, q)
	if err == nil && got.status != status {
		err = fmt.Errorf("%s %s: got %d %.300s, want %d", method, path, got.status, got.body, status)
	}
	return got, err
}

// created is the answer to a creation, with only the members that a value of type place needs.
type created struct {
	Access struct{ Token, Transfer string }
	Data   struct{ ID string }
}

// furnish creates the objects that requests use: a draft, a published asset with a part of each kind, an asset in
// each further state, and an asset of another broker.
func (r *registry) furnish(ctx context.Context) ([]place, error) {
	const assets = "/api/2.5/assets"
	var places []place
	for _, of := range []struct {
		key   string
		steps []string // the states through which the asset goes after the state draft
	}{
		{"broker", nil},
		{"broker", []string{"pending"}},
		{"broker3", []string{"pending"}},
		{"broker", []string{"pending", "verification"}},
		{"broker", []string{"pending", "verification", "active"}},
	} {
		var c, transfer created
		made, err := r.must(ctx, http.StatusCreated, "POST", assets, of.key, "", clients.Creation)
		if err != nil {
			return nil, err
		}
		moved, err := r.must(ctx, http.StatusCreated, "POST", "/api/2.5/transfers", of.key, "", `{"data":{}}`)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(made.body, &c); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(moved.body, &transfer); err != nil {
			return nil, err
		}
		p := place{
			id: c.Data.ID, transfer: transfer.Data.ID, key: of.key, token: c.Access.Token, tag: made.header.Get("ETag"),
			transferToken: c.Access.Transfer, pending: len(of.steps) == 1,
		}
		for _, state := range of.steps {
			if err := r.step(ctx, p, state); err != nil {
				return nil, err
			}
		}
		withParts, err := r.parts(ctx, p)
		if err != nil {
			return nil, err
		}
		places = append(append(places, p), withParts...)
	}
	file, err := r.segment(ctx)
	if err != nil {
		return nil, err
	}
	hook, err := r.webhook(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := r.upload(ctx)
	if err != nil {
		return nil, err
	}
	for i := range places {
		places[i].file = file
		if places[i].key == "broker" {
			places[i].webhook, places[i].stored = hook, stored
		}
	}
	return places, nil
}

const (
	webhooks = "/api/2.5/webhooks"
	webhook  = `{"data":{"url":"https://broker.example/registry"}}` // the host name never resolves (RFC 2606)
)

// webhook returns the id of a webhook of "broker". A broker may have only a few webhooks, so the function creates
// one only if the broker has none.
func (r *registry) webhook(ctx context.Context) (string, error) {
	got, err := r.must(ctx, http.StatusOK, "GET", webhooks+"?limit=1", "broker", "", "")
	if err != nil {
		return "", err
	}
	var there struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(got.body, &there); err != nil {
		return "", err
	}
	if len(there.Data) > 0 {
		return there.Data[0].ID, nil
	}
	made, err := r.must(ctx, http.StatusCreated, "POST", webhooks, "broker", "", webhook)
	if err != nil {
		return "", err
	}
	var c created
	err = json.Unmarshal(made.body, &c)
	return c.Data.ID, err
}

// upload uploads a new file as "broker", and returns its id.
func (r *registry) upload(ctx context.Context) (string, error) {
	contentType, body := fileForm(rand.Text())
	got, err := r.send(ctx, request{method: http.MethodPost, path: "/upload", body: body, header: map[string]string{
		"Authorization": basic("broker"), "Content-Type": contentType,
	}})
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("upload: got %d %.300s, want 200", got.status, got.body)
	}
	if err != nil {
		return "", err
	}
	address, _, _ := strings.Cut(got.header.Get("Location"), "?")
	return path.Base(address), nil
}

// fileForm returns the type and the body of a form with a file.
func fileForm(content string) (contentType string, body []byte) {
	return "multipart/form-data; boundary=b", []byte("--b\r\nContent-Disposition: form-data; name=\"file\"; " +
		"filename=\"a.txt\"\r\n\r\n" + content + "\r\n--b--\r\n")
}

// segment returns the name of a file of the newest snapshot. The registry makes a snapshot when it starts.
func (r *registry) segment(ctx context.Context) (string, error) {
	for {
		got, err := r.send(ctx, request{method: http.MethodGet, path: "/api/2.5/snapshot"})
		if err != nil {
			return "", err
		}
		if got.status == http.StatusNotFound {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		var manifest struct {
			Data struct{ Segments []struct{ Path string } }
		}
		if err := json.Unmarshal(got.body, &manifest); err != nil {
			return "", err
		}
		return path.Base(manifest.Data.Segments[0].Path), nil
	}
}

// lot is the body of a request that adds a related process.
const lot = `{"data":{"type":"lot","relatedProcessID":"9e8d7c6b5a4f43218765f0e1d2c3b4a5"}}`

// step moves an asset to its next state.
func (r *registry) step(ctx context.Context, p place, state string) error {
	key, path := p.key, "/api/2.5/assets/"+p.id
	if state != "pending" {
		key = "concierge"
	}
	if state == "active" {
		if _, err := r.must(ctx, http.StatusCreated, "POST", path+"/related_processes", key, "", lot); err != nil {
			return err
		}
	}
	_, err := r.must(ctx, http.StatusOK, "PATCH", path, key, p.token, fmt.Sprintf(`{"data":{"status":%q}}`, state))
	return err
}

// parts returns a place for each part of an asset.
func (r *registry) parts(ctx context.Context, p place) (places []place, err error) {
	for _, kind := range []string{"items", "decisions", "documents", "related_processes"} {
		got, err := r.must(ctx, http.StatusOK, "GET", "/api/2.5/assets/"+p.id+"/"+kind, "", "", "")
		if err != nil {
			return nil, err
		}
		var list struct{ Data []struct{ ID string } }
		if err := json.Unmarshal(got.body, &list); err != nil {
			return nil, err
		}
		for _, part := range list.Data {
			of := p
			of.part, of.partKind = part.ID, kind
			places = append(places, of)
		}
	}
	return places, nil
}
