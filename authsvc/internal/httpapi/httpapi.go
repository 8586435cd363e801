// Package httpapi serves the HTTP APIs of the auth service: the internal API
// (shared/authapi), which only the registry's own services may call, and the admin API
// (shared/adminapi).
package httpapi

import (
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
	r.POST(authapi.VerifyKeyPath, httpserver.Handle(a.verifyKey))
	r.POST(authapi.IssueTokensPath, httpserver.Handle(a.issueTokens))
	r.POST(authapi.VerifyTokenPath, httpserver.Handle(a.verifyToken))
	r.POST(authapi.ChangeOwnerPath, httpserver.Handle(a.changeOwner))
	r.POST(authapi.RecoverPath, httpserver.Handle(a.recoverTokens))
	r.POST(authapi.NoteRemovalPath, httpserver.Handle(a.noteRemoval))
	r.POST(authapi.ResealPath, httpserver.Handle(a.reseal))
	r.POST(authapi.CreateTransferPath, httpserver.Handle(a.createTransfer))
	r.POST(authapi.ReadTransferPath, httpserver.Handle(a.readTransfer))
	r.POST(authapi.WatchKeysPath, httpserver.Handle(a.watchKeys))
	r.POST(authapi.EndingsPath, httpserver.Handle(a.exchangeEndings))
	r.POST(authapi.ReportUsagePath, httpserver.Handle(a.reportUsage))
}

func onlyServices(c *gin.Context) error {
	if httpserver.Caller(c).Role != identity.Service {
		return fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden")
	}
	return nil
}

func (a *API) issueTokens(c *gin.Context) error {
	var r authapi.IssueTokensRequest
	if err := read(c, &r); err != nil {
		return err
	}
	if r.AssetID == "" || r.Broker == "" {
		return fault.New(fault.Invalid, fault.Body, "asset_id", "The request needs asset_id and broker.")
	}
	issue := a.tokens.Issue
	if r.Seed != "" {
		seed, err := hex.DecodeString(r.Seed)
		if err != nil || len(seed) != sha256.Size {
			return fault.New(fault.Invalid, fault.Body, "seed", "The seed must be %d hex characters.", 2*sha256.Size)
		}
		issue = func(assetID, broker string) (authapi.IssueTokensResponse, error) {
			return a.tokens.IssueAgain(assetID, broker, seed)
		}
	}
	issued, err := issue(r.AssetID, r.Broker)
	if err != nil {
		return fmt.Errorf("issue tokens of asset %s: %w", r.AssetID, err)
	}
	return httpserver.JSON(c, http.StatusOK, issued)
}

func (a *API) verifyToken(c *gin.Context) error {
	var r authapi.VerifyTokenRequest
	if err := read(c, &r); err != nil {
		return err
	}
	answer, err := a.tokens.Verify(c.Request.Context(), r)
	if err != nil {
		return fmt.Errorf("verify token of asset %s: %w", r.AssetID, err)
	}
	return httpserver.JSON(c, http.StatusOK, answer)
}

func (a *API) changeOwner(c *gin.Context) error {
	var r authapi.ChangeOwnerRequest
	if err := read(c, &r); err != nil {
		return err
	}
	answer, err := a.tokens.ChangeOwner(c.Request.Context(), r, a.now())
	if err != nil {
		return fmt.Errorf("change owner of asset %s: %w", r.AssetID, err)
	}
	return httpserver.JSON(c, http.StatusOK, answer)
}

// recoverTokens answers with new tokens only after the audit log has an entry about the recovery.
func (a *API) recoverTokens(c *gin.Context) error {
	var r authapi.RecoverTokensRequest
	if err := read(c, &r); err != nil {
		return err
	}
	if r.KeyID == "" || r.Reason == "" {
		return fault.New(fault.Invalid, fault.Body, "reason", "The request needs key_id and reason.")
	}
	ctx := c.Request.Context()
	answer, err := a.tokens.Recover(ctx, r.AssetID, r.Sealed)
	if err != nil {
		return fmt.Errorf("recover tokens of asset %s: %w", r.AssetID, err)
	}
	by := admin.Actor{Name: r.KeyID + " " + r.Broker, From: r.From, RequestID: httpserver.RequestID(ctx)}
	noted := admin.Recovery{Broker: answer.Owner, Reason: r.Reason}
	if err := a.notes.NoteRecovery(ctx, by, r.AssetID, noted); err != nil {
		return fmt.Errorf("note the recovery of asset %s: %w", r.AssetID, err)
	}
	return httpserver.JSON(c, http.StatusOK, answer)
}

func (a *API) noteRemoval(c *gin.Context) error {
	var r authapi.NoteRemovalRequest
	if err := read(c, &r); err != nil {
		return err
	}
	if r.File == "" || r.KeyID == "" || r.Reason == "" {
		return fault.New(fault.Invalid, fault.Body, "reason", "The request needs file, key_id and reason.")
	}
	ctx := c.Request.Context()
	by := admin.Actor{Name: r.KeyID + " " + r.Broker, From: r.From, RequestID: httpserver.RequestID(ctx)}
	noted := admin.Removal{Reason: r.Reason, SHA256: r.SHA256, Size: r.Size}
	if err := a.notes.NoteRemoval(ctx, by, r.File, noted); err != nil {
		return fmt.Errorf("note the removal of file %s: %w", r.File, err)
	}
	return httpserver.JSON(c, http.StatusOK, struct{}{})
}

func (a *API) reseal(c *gin.Context) error {
	var r authapi.ResealRequest
	if err := read(c, &r); err != nil {
		return err
	}
	if len(r.Sealed) > authapi.MaxReseal {
		return fault.New(fault.Invalid, fault.Body, "sealed", "Send at most %d records at a time.", authapi.MaxReseal)
	}
	sealed, foreign, err := a.tokens.Reseal(r.Sealed)
	if err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusOK, authapi.ResealResponse{Sealed: sealed, Foreign: foreign})
}

func (a *API) createTransfer(c *gin.Context) error {
	var r authapi.CreateTransferRequest
	if err := read(c, &r); err != nil {
		return err
	}
	if r.Broker == "" {
		return fault.New(fault.Invalid, fault.Body, "broker", "The request needs the broker who creates the transfer.")
	}
	answer, err := a.tokens.CreateTransfer(c.Request.Context(), r.Broker, a.now())
	if err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusOK, answer)
}

func (a *API) readTransfer(c *gin.Context) error {
	var r authapi.ReadTransferRequest
	if err := read(c, &r); err != nil {
		return err
	}
	answer, err := a.tokens.Transfer(c.Request.Context(), r, a.now())
	if err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusOK, answer)
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
