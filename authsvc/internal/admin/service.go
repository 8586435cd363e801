// Package admin implements what operators do: they create, change and list brokers and API keys. Each change
// has an entry in the audit log.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/staff"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/sleep"
)

// Actor is the caller of a use case, as the audit log shows it.
type Actor struct {
	Name      string // id and name of the caller's key
	Role      identity.Role
	From      string // address of the caller
	RequestID string
	Once      *Once     // nil: a repeated request makes another change
	Warnings  *[]string // gets a sentence for each way in which a change may be lost; nil: it is only logged
}

// KeyID returns the id of the caller's key, or "console". The public log shows it, so it must not name a person.
func (a Actor) KeyID() string {
	id, _, _ := strings.Cut(a.Name, " ")
	if staff.IsID(id) {
		return "console"
	}
	return id
}

// Once makes sure that a request makes its change only once, even if a client sends it several times and to several
// auth services. The service looks for the request's id in the audit log, so Actor.RequestID must be unique to the
// request.
type Once struct {
	After int64 // number of the log's last entry when the request was prepared
}

// DoneError is the error of a request that has already made its change.
type DoneError struct{ Entry adminapi.Entry }

// Error returns a text with the number of the entry.
func (e *DoneError) Error() string {
	return fmt.Sprintf("entry %d has made this change already", e.Entry.Seq)
}

// OfCommand returns the actor for a command on a machine that has access to the store.
func OfCommand(name string) Actor {
	return Actor{Name: "command " + name, Role: apikey.Operator, From: "the store's machine"}
}

// Service implements the use cases. It is safe for concurrent use.
type Service struct {
	store  Store
	sealer *audit.Sealer
	log    *slog.Logger
	now    func() time.Time
	second Second // nil: there is none
	assets Assets // nil: the service does not know the asset services
}

// NewService returns a service on a store. The given sealer seals the entries that the service adds to the audit log.
func NewService(store Store, sealer *audit.Sealer, log *slog.Logger, now func() time.Time) *Service {
	return &Service{store: store, sealer: sealer, log: log, now: now}
}

// attempts is the maximum number of tries of a change. A try fails if another change was stored first.
const attempts = 20

// change commits the Change that the function `work` returns, with its audit entry. If another change came first,
// it calls the function again.
func (s *Service) change(ctx context.Context, by Actor, action string, work func(now time.Time) (Change, error)) error {
	if by.Role != apikey.Operator {
		return fault.New(fault.Forbidden, fault.Header, "Authorization", "This key may only read here.")
	}
	for range attempts {
		err := s.try(ctx, by, action, work)
		if !errors.Is(err, ErrStale) {
			return err
		}
		if !sleep.For(ctx, rand.N(20*time.Millisecond)) {
			return fmt.Errorf("%s: %w", action, ctx.Err())
		}
	}
	return fault.New(fault.Conflict, fault.Body, "data",
		"Others are changing brokers and keys at the same time. Repeat the request.")
}

// try makes a change, or returns ErrStale if another change came first.
func (s *Service) try(ctx context.Context, by Actor, action string, work func(now time.Time) (Change, error)) error {
	head, err := s.store.Head(ctx) // read first, so that Commit notices every later change
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if err := s.notDone(ctx, by); err != nil {
		return err
	}
	now := s.now().UTC().Truncate(time.Microsecond)
	c, err := work(now)
	if err != nil {
		return err
	}
	e := &c.Entry
	e.Time, e.Who, e.From, e.RequestID, e.Action = now, by.Name, by.From, by.RequestID, action
	if *e, err = s.sealer.Append(adminapi.Head{Seq: max(head.Seq, c.Skip), Hash: head.Hash}, *e); err != nil {
		return err
	}
	begun := time.Now()
	c.Ends = action != audit.EndAgain && len(EndingsOf(*e)) > 0
	err = s.store.Commit(ctx, head, c)
	if err != nil && !errors.Is(err, ErrAlone) {
		return fmt.Errorf("%s: %w", action, err)
	}
	// This line has the hash of the entry. So whoever collects the logs has a copy of the audit log's head.
	s.log.Info("audit", "seq", e.Seq, "hash", e.Hash, "action", action, "subject", e.Subject,
		"who", by.Name, "from", by.From)
	if c.Ends {
		s.confirm(ctx, by, *e, begun, err != nil)
	}
	return nil
}

// confirmWithin is the longest time that an ending waits for a replica and for a second place, together.
const confirmWithin = time.Second

// confirm waits until a second place knows of an ending, and tells the caller if one does not.
func (s *Service) confirm(ctx context.Context, by Actor, e adminapi.Entry, begun time.Time, alone bool) {
	var warnings []string
	if alone {
		warnings = append(warnings, "No replica of the store of keys has confirmed this change in time.")
	}
	if s.second != nil {
		head := adminapi.Head{Seq: e.Seq, Hash: e.Hash}
		if warning := s.second.Await(ctx, head, begun.Add(confirmWithin)); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	for _, warning := range warnings {
		s.log.Warn("a change that ends a right is not safe yet", "seq", e.Seq, "warning", warning)
	}
	if by.Warnings != nil {
		*by.Warnings = append(*by.Warnings, warnings...)
	}
}

// notDone returns a DoneError if the actor's field Once is set and the log has an entry of the same request.
func (s *Service) notDone(ctx context.Context, by Actor) error {
	if by.Once == nil {
		return nil
	}
	err := audit.Each(ctx, s.store, by.Once.After, func(e adminapi.Entry) error {
		if e.RequestID == by.RequestID {
			return &DoneError{e}
		}
		return nil
	})
	if done, ok := errors.AsType[*DoneError](err); ok {
		return done
	}
	if err != nil {
		return fmt.Errorf("look for request %s: %w", by.RequestID, err)
	}
	return nil
}

// Head returns the end of the audit log.
func (s *Service) Head(ctx context.Context) (adminapi.Head, error) { return s.store.Head(ctx) }

// Entries returns up to limit entries of the audit log, in order. The first one follows the entry with the number
// `after`.
func (s *Service) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	return s.store.Entries(ctx, after, limit)
}

// Records returns the brokers and keys of a store for audit.Checker.
func Records(store Directory) audit.Records {
	return func(ctx context.Context, visit func(audit.Record) error) error {
		err := eachKey(ctx, store, "", func(k apikey.Key) error {
			text, err := audit.Encode(k.View())
			if err != nil {
				return err
			}
			// A command needs the registry's secret to make a key of the admin API. So the log must have an entry
			// about each key of the admin API.
			unaudited := k.Unaudited && !apikey.Administers(k.Settings.Role)
			return visit(audit.Record{Subject: audit.OfKey(k.ID), Text: text, Unaudited: unaudited})
		})
		if err != nil {
			return err
		}
		return eachBroker(ctx, store, "", func(b apikey.Broker) error {
			text, err := audit.Encode(b.View())
			if err != nil {
				return err
			}
			return visit(audit.Record{Subject: audit.OfBroker(b.Name), Text: text})
		})
	}
}

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

// Witness does the same as Note for something that needs no right to change anything, such as a sign-in.
func (s *Service) Witness(ctx context.Context, by Actor, action, subject string, what any) error {
	by.Role, by.Once = apikey.Operator, nil
	return s.Note(ctx, by, action, subject, what)
}

// Recovery is what the audit log shows when an asset gets new tokens.
type Recovery struct {
	Broker string `json:"broker"` // owner of the asset
	Reason string `json:"reason"`
}

// NoteRecovery appends an entry to the audit log: an administrator of the public API, or an operator in the
// console, gives an asset new tokens. The asset service has checked that the caller may do so.
func (s *Service) NoteRecovery(ctx context.Context, by Actor, asset string, r Recovery) error {
	return s.Witness(ctx, by, audit.RecoverAsset, audit.OfAsset(asset), r)
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
	return s.Witness(ctx, by, audit.RemoveFile, audit.OfFile(file), r)
}
