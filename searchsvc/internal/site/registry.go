package site

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/fair"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
)

// Limits of one page (docs/site.md, "Limits").
const (
	maxAnswer   = 1 << 20         // bytes of one answer of the registry
	maxRecord   = 256 << 10       // bytes of a record that a page shows
	maxHistory  = 4 << 20         // bytes of past records that one page reads
	readWithin  = 3 * time.Second // time limit for reading one record
	pastWithin  = 2 * time.Second // time limit for reading all past records of one page
	listWithin  = 5 * time.Second // time limit for reading one page of the feed, for the sitemap
	maxReading  = 8               // pages that may read records at the same time
	maxTitle    = 300             // characters of a title outside the record, such as in the head of a page
	perPage     = 10              // changes of a record on a page
	feedEntries = 1000            // entries in one part of the sitemap
)

// registry reads records through the public API.
type registry struct {
	client   *client.Client
	http     *http.Client    // for requests that the client has no method for
	url      string          // without a slash at its end
	readings *fair.Semaphore // one for each page that reads records
	searcher search.Searcher // gives turns to work on large records
}

func newRegistry(address string, transport http.RoundTripper, searcher search.Searcher) (*registry, error) {
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
	return &registry{c, plain, strings.TrimSuffix(address, "/"), fair.New(maxReading), searcher}, nil
}

// Busy returns the fault for a page or a search that too many others keep from being made.
func Busy() error {
	f := fault.New(fault.Unavailable, fault.URL, "search", "There are too many searches now; repeat this one.")
	f.RetryAfter = time.Second
	return f
}

// errLarge is returned for a record that has more than maxRecord bytes.
var errLarge = errors.New("the record is too large for a page")

// asset reads the record of an asset. It returns a fault.NotFound if the asset is not public.
func (r *registry) asset(ctx context.Context, id string) (*value, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	text, err := r.client.GetJSON(ctx, id)
	if err != nil {
		return nil, asFault(err)
	}
	return r.open(ctx, text)
}

func (r *registry) open(ctx context.Context, text json.RawMessage) (*value, error) {
	if len(text) > maxRecord {
		return nil, errLarge
	}
	end, err := r.turnFor(ctx, len(text))
	if err != nil {
		return nil, err
	}
	defer end()
	return parse(text)
}

// turnFor waits for a turn to work on records of so many bytes. Work on few bytes needs no turn.
func (r *registry) turnFor(ctx context.Context, bytes int) (end func(), err error) {
	if bytes <= memory.Small {
		return func() {}, nil
	}
	return r.searcher.Turn(ctx, visitorOf(ctx).caller)
}

// asFault returns the fault for an error of reading from the registry.
func asFault(err error) error {
	switch _, isLarge := errors.AsType[*http.MaxBytesError](err); {
	case isLarge:
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
	Record   *value // the record after the change; nil: the change withdrew or erased it
	Size     int    // bytes of Record
	Leaf     string // hash of the leaf (RFC 6962), in hexadecimal digits
}

// errNoLog is returned if the registry has no public log, and for a record without public changes.
var errNoLog = errors.New("the log has no change of the record")

// errNotYet is returned for a change that the newest checkpoint does not cover.
var errNotYet = errors.New("the log does not have the change yet")

// past reads the public change of a record at a revision. Revision 0 means the newest change.
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
	hash := sha256.Sum256(append([]byte{0}, proof.Leaf...))
	p.Leaf = hex.EncodeToString(hash[:])
	if len(proof.Asset) > 0 {
		if p.Record, err = r.open(ctx, proof.Asset); err != nil {
			return past{}, err
		}
	}
	return p, nil
}

// visitor is the client for whom a page is made.
type visitor struct {
	address string // "": not known
	caller  string // name for package fair; "": none
}

// visitorKey is the key of a context's visitor.
type visitorKey struct{}

func visitorOf(ctx context.Context) visitor {
	of, _ := ctx.Value(visitorKey{}).(visitor)
	return of
}

// bounded limits the size of answers: reading an answer that is too large fails. It also sends the visitor's
// address and name to the registry. If the gateways trust this service as a proxy (docs/features.md, "Site"), the rate
// limits then count each visitor separately, and places go round by visitor. A gateway in this process takes the name.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	of := visitorOf(r.Context())
	r = r.Clone(r.Context()) // a RoundTripper must not change its request
	if of.address != "" {
		r.Header.Set("X-Forwarded-For", of.address)
	}
	if of.caller != "" {
		r.Header.Set(httpserver.CallerHeader, of.caller)
	}
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	return resp, nil
}
