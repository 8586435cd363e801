package admin

import (
	"context"
	"time"

	"asset-registry/authsvc/internal/audit"
)

// NoteWebhook appends an entry to the audit log: that the actor does something to a
// webhook, which the asset service has. The entry shows what as the state after it.
func (s *Service) NoteWebhook(ctx context.Context, by Actor, action, id string, what any) error {
	return s.change(ctx, by, action, func(time.Time) (c Change, err error) {
		c.Entry.Subject = audit.OfWebhook(id)
		c.Entry.After, err = audit.Encode(what)
		return c, err
	})
}
