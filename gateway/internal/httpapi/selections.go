package httpapi

import (
	"sync"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/stream"
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

// clientCopies is how many whole copies a client may read at the same time.
const clientCopies = 4

// routeCopies adds the routes of whole copies, which the asset service answers. A mirror has none.
func (a *API) routeCopies(engine *gin.Engine) {
	share := a.share(a.copies, a.nameOf, "You read %d whole copies at once; finish one first.")
	of := route{
		class: routes.Read, answer: a.forwardTo(a.config.Assets.Patient(), samePath), share: share, stored: true,
		places: a.places.assets,
	}
	if a.isMirror() {
		of = route{class: routes.Read, answer: a.toOrigin}
	}
	for _, path := range []string{routes.Copy, routes.CopyByHash} {
		engine.Match(reading, path, a.pipeline(of))
	}
}
