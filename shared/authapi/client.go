package authapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"asset-registry/shared/errs"
	"asset-registry/shared/fair"
	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/telemetry"
)

const (
	callTimeout = 2 * time.Second // time limit of a call; the caller's context may end sooner
	maxAnswer   = 64 << 10        // maximum number of bytes of an answer
)

// Client calls the auth service. It is safe for concurrent use. Every method
// returns the fault in the service's answer. If the service does not answer in
// time, it returns a fault of kind Unavailable.
type Client struct {
	http   *http.Client
	signer *identity.Signer
	caller identity.Identity
}

// NewClient returns a client of the auth service to which the transport leads.
// The calls carry the name of the calling service.
func NewClient(transport http.RoundTripper, signer *identity.Signer, service string) *Client {
	return &Client{
		http:   httpclient.New(telemetry.Transport(transport)),
		signer: signer,
		caller: identity.Identity{Broker: service, Role: identity.Service},
	}
}

// VerifyKey returns the key whose secret has the hash keyHash. For an unknown key it returns a fault of kind
// Unauthorized.
func (c *Client) VerifyKey(ctx context.Context, keyHash string) (Key, error) {
	var answer VerifyKeyResponse
	if err := c.call(ctx, VerifyKeyPath, VerifyKeyRequest{KeyHash: keyHash}, &answer); err != nil {
		return Key{}, fmt.Errorf("verify key: %w", err)
	}
	return Key{
		Identity: identity.Identity{
			Broker: answer.Broker, KeyID: answer.KeyID, Role: identity.Role(answer.Role), Levels: answer.Levels,
		},
		Secret:  answer.Secret,
		Allow:   answer.Allow,
		Limits:  answer.Limits,
		GoodFor: time.Duration(answer.GoodForMS) * time.Millisecond,

		Raise:     answer.Raise,
		RaisedFor: time.Duration(answer.RaisedForMS) * time.Millisecond,
	}, nil
}

// IssueTokens returns the tokens of a new asset.
func (c *Client) IssueTokens(ctx context.Context, r IssueTokensRequest) (IssueTokensResponse, error) {
	return ask[IssueTokensResponse](ctx, c, IssueTokensPath, r, "issue tokens")
}

// VerifyToken verifies whether a token makes its bearer the owner of an asset.
func (c *Client) VerifyToken(ctx context.Context, r VerifyTokenRequest) (VerifyTokenResponse, error) {
	return ask[VerifyTokenResponse](ctx, c, VerifyTokenPath, r, "verify token")
}

// CreateTransfer creates a transfer for a broker.
func (c *Client) CreateTransfer(ctx context.Context, broker string) (CreateTransferResponse, error) {
	r := CreateTransferRequest{Broker: broker}
	return ask[CreateTransferResponse](ctx, c, CreateTransferPath, r, "create transfer")
}

// ReadTransfer returns a transfer, or a fault of kind NotFound.
func (c *Client) ReadTransfer(ctx context.Context, r ReadTransferRequest) (TransferResponse, error) {
	return ask[TransferResponse](ctx, c, ReadTransferPath, r, "read transfer")
}

// ChangeOwner claims a transfer for an asset. docs/contract.md, "Ownership", lists
// its faults.
func (c *Client) ChangeOwner(ctx context.Context, r ChangeOwnerRequest) (ChangeOwnerResponse, error) {
	return ask[ChangeOwnerResponse](ctx, c, ChangeOwnerPath, r, "change owner")
}

// RecoverTokens returns new tokens of an asset. Package upstream does not retry the call, because each call makes an
// entry of the audit log.
func (c *Client) RecoverTokens(ctx context.Context, r RecoverTokensRequest) (RecoverTokensResponse, error) {
	var answer RecoverTokensResponse
	err := c.send(ctx, RecoverPath, r, &answer, false)
	return answer, errs.In(err, "recover tokens")
}

// NoteRemoval writes to the audit log that a file was taken down.
func (c *Client) NoteRemoval(ctx context.Context, r NoteRemovalRequest) error {
	return errs.In(c.send(ctx, NoteRemovalPath, r, &struct{}{}, false), "note the removal of a file")
}

// Ready returns nil if the auth service can store changes.
func (c *Client) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://authsvc/readyz", nil)
	if err != nil {
		return fmt.Errorf("address auth service: %w", err)
	}
	req.Header.Set(httpserver.RequestIDHeader, httpserver.RequestID(ctx))
	resp, err := c.http.Do(req)
	if err != nil {
		return unavailable(err)
	}
	defer resp.Body.Close()
	return faulthttp.Read(resp)
}

// Reseal seals records with the current secret, and returns them in the same order.
func (c *Client) Reseal(ctx context.Context, sealed []string) (ResealResponse, error) {
	var answer ResealResponse
	if err := c.call(ctx, ResealPath, ResealRequest{Sealed: sealed}, &answer); err != nil {
		return ResealResponse{}, fmt.Errorf("reseal: %w", err)
	}
	if len(answer.Sealed) != len(sealed) {
		return ResealResponse{}, fmt.Errorf("reseal: got %d records for %d", len(answer.Sealed), len(sealed))
	}
	return answer, nil
}

// ask makes a call and returns the answer. The argument `does` names the call in errors.
func ask[A any](ctx context.Context, c *Client, path string, request any, does string) (answer A, err error) {
	err = c.call(ctx, path, request, &answer)
	return answer, errs.In(err, "%s", does)
}

// call sends a request that package upstream may retry. While it waits, its caller has no place.
func (c *Client) call(ctx context.Context, path string, request, answer any) error {
	return fair.Rest(ctx, func() error { return c.send(ctx, path, request, answer, true) })
}

func (c *Client) send(ctx context.Context, path string, request, answer any, repeatable bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://authsvc"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("address auth service: %w", err)
	}
	signed, err := c.signer.Sign(c.caller)
	if err != nil {
		return err
	}
	if repeatable {
		req.Header["Idempotency-Key"] = nil // sends no header, but lets package upstream retry the request
	}
	req.Header.Set(identity.Header, signed)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(httpserver.RequestIDHeader, httpserver.RequestID(ctx))
	httpserver.SetTimeout(ctx, req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return unavailable(err)
	}
	defer resp.Body.Close()
	err = faulthttp.Decode(resp, maxAnswer, answer)
	f, isFault := errors.AsType[*fault.Error](err)
	if err != nil && (!isFault || f.Details[0].Name == identity.Header) {
		return unavailable(err) // not an answer, or our signature was refused, which the caller cannot change
	}
	return err
}

// unavailable returns the fault for a call to which the auth service gave no usable
// answer. The cause is for the log.
func unavailable(cause error) error {
	f := fault.New(fault.Unavailable, fault.URL, "authorization",
		"Keys and tokens cannot be checked now; repeat the request.")
	return fmt.Errorf("%w: %w", f, cause)
}
