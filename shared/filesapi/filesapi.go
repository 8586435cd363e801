// Package filesapi has the requests between the file service and other services (docs/files.md, "Binding").
package filesapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/identity"
	"asset-registry/shared/telemetry"
)

// The paths of requests between the file service and other services.
const (
	// ClaimPath is the path of claims. The id of the file follows it.
	ClaimPath = "/claims/"
	// FormPath is the path for a form that has a document and its file. The answer has the document.
	FormPath = "/forms"
	// CompletePath is the path of completions at the asset service. The id of the asset follows it.
	CompletePath = "/completions/"
)

// Completion is sent when the bytes of a file arrive after documents of an asset already refer to the file. It
// has the facts that these documents then get.
type Completion struct {
	File   string `json:"file"`   // id of the file
	SHA256 string `json:"sha256"` // 64 hexadecimal digits
	Size   int64  `json:"size"`
	Broker string `json:"broker"` // tenant that uploaded the file
	KeyID  string `json:"key"`    // id of the API key that the tenant used
}

// Claim says that a document is about to refer to a file.
type Claim struct {
	MD5    string `json:"md5"`    // hash in the document: 32 hexadecimal digits
	Broker string `json:"broker"` // broker that writes the document
	Signed bool   `json:"signed"` // the address in the document had a valid signature
}

// Claimed has the facts that a document gets about the file that it refers to.
type Claimed struct {
	SHA256 string `json:"sha256,omitempty"` // 64 hexadecimal digits; "": the bytes have not been uploaded yet
	Size   int64  `json:"size,omitempty"`
}

const (
	callTimeout = 30 * time.Second // the caller's context usually ends earlier
	maxAnswer   = 64 << 10         // maximum number of bytes of an answer
)

// Client calls the file service. It is safe for concurrent use.
type Client struct {
	http   *http.Client
	signer *identity.Signer
	caller identity.Identity
}

// NewClient returns a client of the file service. The argument `transport` leads to that service. The calls carry the
// name of the calling service, with a signature that the argument `signer` makes.
func NewClient(transport http.RoundTripper, signer *identity.Signer, service string) *Client {
	return &Client{
		http:   httpclient.New(telemetry.Transport(transport)),
		signer: signer,
		caller: identity.Identity{Broker: service, Role: identity.Service},
	}
}

// Claim keeps a file for another day, so that the caller can commit a document that refers to the file. It returns
// the fault in the answer. If no answer comes in time, the fault has the kind Unavailable.
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
	return answer, faulthttp.Decode(resp, maxAnswer, &answer)
}

// FormBoundary returns the boundary of a body that is a form in which files can be sent (multipart/form-data).
// isForm is false if the header has no boundary.
func FormBoundary(h http.Header) (boundary string, isForm bool) {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	boundary = params["boundary"]
	return boundary, err == nil && media == "multipart/form-data" && boundary != ""
}
