// Package httpapi serves the HTTP APIs of the auth service: the internal API
// (shared/authapi), which only the registry's own services may call, and the admin API
// (shared/adminapi).
package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/ending"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
)

// maxBody is the maximum number of bytes in the body of a request. No request needs nearly as many.
const maxBody = 64 << 10

// API serves the internal API.
type API struct {
	keys   Keys
	tokens *token.Service
	notes  *admin.Service
	now    func() time.Time
}

// Keys answers the calls about API keys.
type Keys struct {
	*apikey.Verifier
	*apikey.Watch
	Endings *ending.Guard
	*apikey.Meter
}

// New returns the internal API for keys and tokens. The API uses the argument `notes` to record recoveries of assets
// and removals of files in the audit log.
func New(keys Keys, tokens *token.Service, notes *admin.Service, now func() time.Time) *API {
	return &API{keys, tokens, notes, now}
}

// Route adds the routes to engine.
func (a *API) Route(engine *gin.Engine, signer *identity.Signer) {
	r := engine.Group("", httpserver.Identify(signer), httpserver.Handle(onlyServices))
	r.POST(authapi.VerifyKeyPath, answerTo(a.verifyKey))
	r.POST(authapi.IssueTokensPath, answerTo(a.issueTokens))
	r.POST(authapi.VerifyTokenPath, answerTo(a.verifyToken))
	r.POST(authapi.ChangeOwnerPath, answerTo(a.changeOwner))
	r.POST(authapi.RecoverPath, answerTo(a.recoverTokens))
	r.POST(authapi.NoteRemovalPath, answerTo(a.noteRemoval))
	r.POST(authapi.ResealPath, answerTo(a.reseal))
	r.POST(authapi.CreateTransferPath, answerTo(a.createTransfer))
	r.POST(authapi.ReadTransferPath, answerTo(a.readTransfer))
	r.POST(authapi.WatchKeysPath, answerTo(a.watchKeys))
	r.POST(authapi.EndingsPath, answerTo(a.exchangeEndings))
	r.POST(authapi.ReportUsagePath, answerTo(a.reportUsage))
}

func onlyServices(c *gin.Context) error {
	if httpserver.Caller(c).Role != identity.Service {
		return fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden")
	}
	return nil
}

// answerTo makes a handler of a function that answers a request in JSON.
func answerTo[R, A any](answer func(context.Context, R) (A, error)) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		var r R
		if err := read(c, &r); err != nil {
			return err
		}
		made, err := answer(c.Request.Context(), r)
		if err != nil {
			return err
		}
		return httpserver.JSON(c, http.StatusOK, made)
	})
}

func (a *API) issueTokens(_ context.Context, r authapi.IssueTokensRequest) (
	issued authapi.IssueTokensResponse, err error,
) {
	if r.AssetID == "" || r.Broker == "" {
		return issued, fault.New(fault.Invalid, fault.Body, "asset_id", "The request needs asset_id and broker.")
	}
	if r.Seed == "" {
		issued, err = a.tokens.Issue(r.AssetID, r.Broker)
	} else {
		var seed []byte
		if seed, err = hex.DecodeString(r.Seed); err != nil || len(seed) != sha256.Size {
			return issued, fault.New(fault.Invalid, fault.Body, "seed",
				"The seed must be %d hex characters.", 2*sha256.Size)
		}
		issued, err = a.tokens.IssueAgain(r.AssetID, r.Broker, seed)
	}
	return issued, errs.In(err, "issue tokens of asset %s", r.AssetID)
}

func (a *API) verifyToken(ctx context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	answer, err := a.tokens.Verify(ctx, r)
	return answer, errs.In(err, "verify token of asset %s", r.AssetID)
}

func (a *API) changeOwner(ctx context.Context, r authapi.ChangeOwnerRequest) (authapi.ChangeOwnerResponse, error) {
	answer, err := a.tokens.ChangeOwner(ctx, r, a.now())
	return answer, errs.In(err, "change owner of asset %s", r.AssetID)
}

// recoverTokens answers with new tokens only after the audit log has an entry about the recovery.
func (a *API) recoverTokens(ctx context.Context, r authapi.RecoverTokensRequest) (
	none authapi.RecoverTokensResponse, err error,
) {
	if r.KeyID == "" || r.Reason == "" {
		return none, fault.New(fault.Invalid, fault.Body, "reason", "The request needs key_id and reason.")
	}
	answer, err := a.tokens.Recover(ctx, r.AssetID, r.Sealed)
	if err != nil {
		return none, fmt.Errorf("recover tokens of asset %s: %w", r.AssetID, err)
	}
	by := admin.Actor{Name: r.KeyID + " " + r.Broker, From: r.From, RequestID: httpserver.RequestID(ctx)}
	noted := admin.Recovery{Broker: answer.Owner, Reason: r.Reason}
	if err := a.notes.NoteRecovery(ctx, by, r.AssetID, noted); err != nil {
		return none, fmt.Errorf("note the recovery of asset %s: %w", r.AssetID, err)
	}
	return answer, nil
}

func (a *API) noteRemoval(ctx context.Context, r authapi.NoteRemovalRequest) (none struct{}, err error) {
	if r.File == "" || r.KeyID == "" || r.Reason == "" {
		return none, fault.New(fault.Invalid, fault.Body, "reason", "The request needs file, key_id and reason.")
	}
	by := admin.Actor{Name: r.KeyID + " " + r.Broker, From: r.From, RequestID: httpserver.RequestID(ctx)}
	noted := admin.Removal{Reason: r.Reason, SHA256: r.SHA256, Size: r.Size}
	return none, errs.In(a.notes.NoteRemoval(ctx, by, r.File, noted), "note the removal of file %s", r.File)
}

func (a *API) reseal(_ context.Context, r authapi.ResealRequest) (answer authapi.ResealResponse, err error) {
	if len(r.Sealed) > authapi.MaxReseal {
		return answer, fault.New(fault.Invalid, fault.Body, "sealed",
			"Send at most %d records at a time.", authapi.MaxReseal)
	}
	answer.Sealed, answer.Foreign, err = a.tokens.Reseal(r.Sealed)
	return answer, err
}

func (a *API) createTransfer(ctx context.Context, r authapi.CreateTransferRequest) (
	authapi.CreateTransferResponse, error,
) {
	if r.Broker == "" {
		return authapi.CreateTransferResponse{}, fault.New(fault.Invalid, fault.Body, "broker",
			"The request needs the broker who creates the transfer.")
	}
	return a.tokens.CreateTransfer(ctx, r.Broker, a.now())
}

func (a *API) readTransfer(ctx context.Context, r authapi.ReadTransferRequest) (authapi.TransferResponse, error) {
	return a.tokens.Transfer(ctx, r, a.now())
}

func (a *API) verifyKey(ctx context.Context, r authapi.VerifyKeyRequest) (authapi.VerifyKeyResponse, error) {
	k, err := a.keys.Verify(ctx, r.KeyHash)
	if err != nil {
		return authapi.VerifyKeyResponse{}, err
	}
	answer := authapi.VerifyKeyResponse{
		Broker: k.Broker, KeyID: k.KeyID, Role: string(k.Role), Levels: k.Levels,
		Secret: k.Secret, Allow: k.Allow, Limits: k.Limits,
		Raise: k.Raise, RaisedForMS: k.RaisedFor.Milliseconds(),
	}
	if k.GoodFor > 0 {
		answer.GoodForMS = max(1, k.GoodFor.Milliseconds())
	}
	return answer, nil
}

// maxWait is the longest time for which watchKeys waits for a change.
const maxWait = time.Second

func (a *API) watchKeys(ctx context.Context, r authapi.WatchKeysRequest) (authapi.WatchKeysResponse, error) {
	return a.keys.Await(ctx, r.Since, min(time.Duration(r.WaitMS)*time.Millisecond, maxWait))
}

func (a *API) exchangeEndings(ctx context.Context, r authapi.EndingsRequest) (authapi.EndingsResponse, error) {
	r.WaitMS = min(r.WaitMS, maxWait.Milliseconds())
	return a.keys.Endings.Hear(ctx, r, a.keys.Await)
}

func (a *API) reportUsage(ctx context.Context, r authapi.ReportUsageRequest) (authapi.ReportUsageResponse, error) {
	return authapi.ReportUsageResponse{}, a.keys.Report(ctx, r)
}

func read(c *gin.Context, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fault.New(fault.Invalid, fault.Body, "data", "The body must be JSON with the fields of this call only.")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fault.New(fault.Invalid, fault.Body, "data", "The body must end after its JSON value.")
	}
	return nil
}
