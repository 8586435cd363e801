package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpclient"
)

// The bounds of one page (docs/site.md, "Limits").
const (
	maxAnswer   = 1 << 20         // bytes of an answer of the registry
	maxRecord   = 256 << 10       // bytes of a record that a page shows
	maxHistory  = 4 << 20         // bytes of past records that one page reads
	readWithin  = 3 * time.Second // one reading
	pastWithin  = 2 * time.Second // all past records of one page
	listWithin  = 5 * time.Second // a page of the feed, for a map of the site
	maxReading  = 8               // pages that read records at the same time
	waitToRead  = time.Second     // for one of them to end
	maxTitle    = 300             // characters of a title outside the record
	perPage     = 10              // changes of a record on a page
	feedEntries = 1000            // entries of one map of the site
)

// registry reads records through the public API.
type registry struct {
	client *client.Client
	http   *http.Client // for what has no call of the client
	url    string       // without a slash at its end
	turns  turns        // one for each page that reads
}

// turns bounds how many goroutines do something at the same time. Its capacity is the number
// of them.
type turns chan struct{}

// take waits for a turn. The caller calls end once it is over; further calls do nothing.
func (t turns) take(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, waitToRead)
	defer cancel()
	select {
	case t <- struct{}{}:
		return sync.OnceFunc(func() { <-t }), nil
	case <-ctx.Done():
		return nil, errBusy()
	}
}

func newRegistry(address string, transport http.RoundTripper) (*registry, error) {
	if transport == nil {
		transport = http.DefaultTransport
	}
	c, err := client.New(client.Config{
		URL: address, UserAgent: "asset-registry-site", Transport: bounded{transport}, Timeout: readWithin,
		Retry: client.Retry{Tries: 2, Total: time.Second},
	})
	if err != nil {
		return nil, err
	}
	plain := httpclient.New(bounded{transport})
	return &registry{c, plain, strings.TrimSuffix(address, "/"), make(turns, maxReading)}, nil
}

// errBusy returns the refusal of a page while too many are read.
func errBusy() error {
	f := fault.New(fault.Unavailable, fault.URL, "site", "Too many pages are read now; repeat the request.")
	f.RetryAfter = time.Second
	return f
}

// errLarge is returned for a record that has more than maxRecord bytes.
var errLarge = errors.New("the record is too large for a page")

// asset reads a record. It returns a fault.NotFound for one that is not public.
func (r *registry) asset(ctx context.Context, id string) (*value, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	text, err := r.client.GetJSON(ctx, id)
	if err != nil {
		return nil, asFault(err)
	}
	return r.open(text)
}

func (r *registry) open(text json.RawMessage) (*value, error) {
	if len(text) > maxRecord {
		return nil, errLarge
	}
	return parse(text)
}

// asFault returns the fault of an answer of the registry.
func asFault(err error) error {
	switch {
	case errors.Is(err, errLarge):
		return errLarge
	case client.IsNotFound(err), client.IsInvalid(err):
		return fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found")
	case errors.Is(err, context.Canceled):
		return err
	}
	f := fault.New(fault.Unavailable, fault.URL, "registry", "The registry cannot be reached now; repeat the request.")
	f.RetryAfter = time.Second
	return fmt.Errorf("%w: %w", f, err)
}

// past is a public change of a record.
type past struct {
	Revision int64
	Kind     string // publish, change, withdraw or import (docs/log.md, "Leaves")
	At       time.Time
	Record   *value // after the change; nil: withdrawn or erased
	Size     int    // bytes of Record
}

// errNoLog is returned by a registry without a public log, and for a record that has no
// public change.
var errNoLog = errors.New("the log has no change of the record")

// errNotYet is returned for a change that the newest checkpoint does not cover.
var errNotYet = errors.New("the log does not have the change yet")

// past reads a public change of a record, the newest one for revision 0.
func (r *registry) past(ctx context.Context, id string, revision int64) (past, error) {
	proof, err := r.client.Proof(ctx, id, revision)
	switch client.StatusOf(err) {
	case http.StatusNotFound:
		return past{}, errNoLog
	case http.StatusServiceUnavailable:
		return past{}, errNotYet
	}
	if err != nil {
		return past{}, asFault(err)
	}
	var leaf struct {
		Kind     string `json:"kind"`
		Position int64  `json:"position"`
		Revision int64  `json:"revision"`
	}
	if err := json.Unmarshal(proof.Leaf, &leaf); err != nil {
		return past{}, fmt.Errorf("read a leaf of the log: %w", err)
	}
	p := past{Revision: leaf.Revision, Kind: leaf.Kind, At: time.UnixMicro(leaf.Position), Size: len(proof.Asset)}
	if len(proof.Asset) > 0 {
		if p.Record, err = r.open(proof.Asset); err != nil {
			return past{}, err
		}
	}
	return p, nil
}

// visitorKey is the key of the visitor's address in a context.
type visitorKey struct{}

// withVisitor returns a context with the address of the visitor for whom the registry is
// read; "" stands for none.
func withVisitor(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, visitorKey{}, address)
}

// bounded fails the reading of an answer that is too large. It names the visitor to the
// registry, so that the rate limits count each visitor, if the gateways trust this service
// as a proxy (docs/features.md, "Site").
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if visitor, _ := r.Context().Value(visitorKey{}).(string); visitor != "" {
		r = r.Clone(r.Context()) // a RoundTripper must not change its request
		r.Header.Set("X-Forwarded-For", visitor)
	}
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &boundedBody{resp.Body, maxAnswer}
	return resp, nil
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, errLarge
	}
	return n, err
}
