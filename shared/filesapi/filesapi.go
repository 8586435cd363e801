// Package filesapi is what other services ask the file service for (docs/files.md, "Binding").
package filesapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/identity"
	"asset-registry/shared/telemetry"
)

// The paths that other services ask for.
const (
	// ClaimPath is the path of claims; the id of the file follows.
	ClaimPath = "/claims/"
	// FormPath takes the form of a document with its file. It answers with the document.
	FormPath = "/forms"
	// CompletePath is the path of completions at the asset service; the id of the asset follows.
	CompletePath = "/completions/"
)

// Completion is what documents of an asset say about a file whose bytes came after they did.
type Completion struct {
	File   string `json:"file"`   // id
	SHA256 string `json:"sha256"` // 64 hexadecimal digits
	Size   int64  `json:"size"`
	Broker string `json:"broker"` // tenant that uploaded the file
	KeyID  string `json:"key"`    // its API key
}

// Claim is a document that is about to name a file.
type Claim struct {
	MD5    string `json:"md5"`    // the hash of the document: 32 hexadecimal digits
	Broker string `json:"broker"` // who writes the document
	Signed bool   `json:"signed"` // the address of the document had the right signature
}

// Claimed is what a document says about the file that it names.
type Claimed struct {
	SHA256 string `json:"sha256,omitempty"` // 64 hexadecimal digits; "": the bytes have not come
	Size   int64  `json:"size,omitempty"`
}

const (
	callTimeout = 30 * time.Second // the caller's context ends sooner
	maxAnswer   = 64 << 10         // bytes
)

// Client calls the file service. It is safe for concurrent use.
type Client struct {
	http   *http.Client
	signer *identity.Signer
	caller identity.Identity
}

// NewClient returns a client of the file service behind a transport. The calls carry the name
// of the calling service.
func NewClient(transport http.RoundTripper, signer *identity.Signer, service string) *Client {
	return &Client{
		http:   httpclient.New(telemetry.Transport(transport)),
		signer: signer,
		caller: identity.Identity{Broker: service, Role: identity.Service},
	}
}

// Claim keeps a file for another day, so that a document can be committed that names it. It
// returns the fault in the answer, and one of kind Unavailable without an answer in time.
func (c *Client) Claim(ctx context.Context, id string, claim Claim) (answer Claimed, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := json.Marshal(claim)
	if err != nil {
		return Claimed{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://filesvc"+ClaimPath+id, bytes.NewReader(text))
	if err != nil {
		return Claimed{}, err
	}
	signed, err := c.signer.Sign(c.caller)
	if err != nil {
		return Claimed{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(identity.Header, signed)
	resp, err := c.http.Do(r)
	if err != nil {
		away := fault.New(fault.Unavailable, fault.Body, "url", "Files cannot be checked now; repeat the request.")
		return Claimed{}, fmt.Errorf("%w: %w", away, err)
	}
	defer resp.Body.Close()
	if err := faulthttp.Read(resp); err != nil {
		return Claimed{}, err
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer); err != nil {
		return Claimed{}, fmt.Errorf("read the answer to a claim: %w", err)
	}
	return answer, nil
}
