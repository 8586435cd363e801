package admin

import (
	"context"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
)

// Note appends an entry to the audit log about a thing of another service: the actor does something to a
// webhook, an asset or a file. The last argument is the state of the thing after the action.
func (s *Service) Note(ctx context.Context, by Actor, action, subject string, what any) error {
	return s.change(ctx, by, action, func(time.Time) (c Change, err error) {
		c.Entry.Subject = subject
		c.Entry.After, err = audit.Encode(what)
		return c, err
	})
}

// NotDone returns a DoneError if the log already has an entry of the actor's request. The actor's field Once
// must be set. A nil result is no guarantee, because another auth service may be handling the same request now.
func (s *Service) NotDone(ctx context.Context, by Actor) error { return s.notDone(ctx, by) }

// Recovery is what the audit log shows when an asset gets new tokens.
type Recovery struct {
	Broker string `json:"broker"` // owner of the asset
	Reason string `json:"reason"`
}

// NoteRecovery appends an entry to the audit log: an administrator of the public API, or an operator in the
// console, gives an asset new tokens. The asset service has checked that the caller may do so.
func (s *Service) NoteRecovery(ctx context.Context, by Actor, asset string, r Recovery) error {
	by.Role = apikey.Operator
	return s.Note(ctx, by, audit.RecoverAsset, audit.OfAsset(asset), r)
}

// Removal is what the audit log shows of a file that was taken down.
type Removal struct {
	Reason string `json:"reason"`
	SHA256 string `json:"sha256,omitempty"` // "": the file had no bytes yet
	Size   int64  `json:"size"`
}

// NoteRemoval appends an entry to the audit log: an administrator of the public API has taken a file down. The
// file service has checked that the caller may do so.
func (s *Service) NoteRemoval(ctx context.Context, by Actor, file string, r Removal) error {
	by.Role = apikey.Operator
	return s.Note(ctx, by, audit.RemoveFile, audit.OfFile(file), r)
}
