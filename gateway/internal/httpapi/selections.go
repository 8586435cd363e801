package httpapi

import (
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
)

// clientSelections is how many selections with named fields one caller may follow at the same time.
const clientSelections = 4

// selections records which caller follows which selection with named fields. A caller may follow only a few of these
// selections. All callers without an API key together may follow only a part of the selections that the gateway can
// follow. So nobody can keep others from following a selection. It is safe for concurrent use.
type selections struct {
	mu        sync.Mutex
	of        map[string]map[stream.Selection]int // number of streams of each caller, by selection
	anonymous map[stream.Selection]int            // number of streams of all callers without an API key, by selection
}

func newSelections() *selections {
	return &selections{of: map[string]map[stream.Selection]int{}, anonymous: map[stream.Selection]int{}}
}

// enter reports whether a caller may follow a selection. An admitted caller must call the function `leave` once.
func (s *selections) enter(caller string, hasKey bool, followed stream.Selection) (leave func(), admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[caller]
	if own[followed] == 0 && len(own) == clientSelections {
		return nil, false
	}
	if !hasKey && s.anonymous[followed] == 0 && len(s.anonymous) == maxSelections-maxSelections/keyShare {
		return nil, false
	}
	if own == nil {
		own = map[stream.Selection]int{}
		s.of[caller] = own
	}
	own[followed]++
	if !hasKey {
		s.anonymous[followed]++
	}
	return func() { s.leave(caller, hasKey, followed) }, true
}

func (s *selections) leave(caller string, hasKey bool, followed stream.Selection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[caller]
	if own[followed]--; own[followed] == 0 {
		delete(own, followed)
	}
	if len(own) == 0 {
		delete(s.of, caller)
	}
	if hasKey {
		return
	}
	if s.anonymous[followed]--; s.anonymous[followed] == 0 {
		delete(s.anonymous, followed)
	}
}

// shareSegments refuses a request for a segment if its client reads too many segments at the same time. A slow
// client keeps a reader of the asset service busy for long, and there are only a few readers. The request must
// have passed identify.
func (a *API) shareSegments(next handler) handler {
	return func(c *gin.Context) error {
		client := a.nameOf(c)
		switch a.segments.Enter(client) {
		case concurrency.ShareUsed:
			f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
				"You read %d segments of the snapshot at once; finish one first.", a.config.Settings.ClientSegments)
			f.RetryAfter = time.Second
			return f
		case concurrency.AllUsed:
			return a.crowded(c)
		}
		defer a.segments.Leave(client)
		return next(c)
	}
}

// clientCopies is how many whole copies a client may read at the same time.
const clientCopies = 4

// routeCopies adds the routes of whole copies, which the asset service answers. A mirror has none.
func (a *API) routeCopies(engine *gin.Engine) {
	of := route{
		class: routes.Read, answer: a.forwardTo(a.config.Assets.Patient(), samePath), share: a.shareCopies, stored: true,
		places: a.places.assets,
	}
	if a.isMirror() {
		of = route{class: routes.Read, answer: a.toOrigin}
	}
	for _, path := range []string{routes.Copy, routes.CopyByHash} {
		engine.Match(reading, path, a.pipeline(of))
	}
}

// shareCopies refuses a request for a whole copy if its client reads too many at the same time. The request must
// have passed identify.
func (a *API) shareCopies(next handler) handler {
	return func(c *gin.Context) error {
		client := a.nameOf(c)
		switch a.copies.Enter(client) {
		case concurrency.ShareUsed:
			f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
				"You read %d whole copies at once; finish one first.", clientCopies)
			f.RetryAfter = time.Second
			return f
		case concurrency.AllUsed:
			return a.crowded(c)
		}
		defer a.copies.Leave(client)
		return next(c)
	}
}
