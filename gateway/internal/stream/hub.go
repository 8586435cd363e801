// Package stream sends the feed to followers as it grows (docs/contract.md, "Streams";
// docs/architecture.md, "Live feed").
//
// A Hub follows one selection of the feed at the asset services, and keeps the newest entries in a ring. So
// each change comes to this process only once, even if many clients follow the selection. A Follower is one
// client. It reads pages until it reaches the entries that the ring has. From then on it takes everything from
// the ring.
package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"asset-registry/shared/follow"
	"asset-registry/shared/sleep"
)

// Selection says which part of the feed followers see.
type Selection struct {
	Version string // version of the API: "2.5"
	Mode    string // value of the parameter mode
	Fields  string // value of the parameter opt_fields; "": no fields, "*": all fields
}

// IsChosen reports whether the client has named fields.
func (s Selection) IsChosen() bool { return s.Fields != "" && s.Fields != "*" }

// Source is the feed at the asset services. The messages of both methods end with the
// error that a read from the io.ReadCloser returns. The caller must close the io.ReadCloser.
type Source interface {
	// Page returns up to limit entries after an offset; "" stands for the start of the feed. Before the entries
	// comes a bookmark with the offset itself. At the end comes a bookmark up to which the entries are
	// complete. If the asset service refuses the request, Page returns a fault.
	Page(ctx context.Context, s Selection, offset string, limit int) (io.ReadCloser, error)
	// Live returns the feed from now on. It begins with a bookmark. Then messages follow as they come, at least
	// one every few seconds.
	Live(ctx context.Context, s Selection) (io.ReadCloser, error)
}

// pageLimit is the maximum number of entries of a page.
const pageLimit = 1000

// offsetOf returns the offset for a position (docs/contract.md, "Offsets").
func offsetOf(position int64) string {
	if position == 0 {
		return ""
	}
	return time.UnixMicro(position).UTC().Format("2006-01-02T15:04:05.000000Z")
}

const (
	retryLeast = 50 * time.Millisecond // pause after an error; each further pause is twice as long, up to retryMost
	retryMost  = 2 * time.Second
	linger     = 10 * time.Second // a hub without followers ends after this time
)

// ErrTooMany is returned if the hubs already follow as many selections as they may.
var ErrTooMany = errors.New("too many selections of the feed are followed")

// Hubs has one Hub for each selection that somebody follows. It is safe for concurrent use.
type Hubs struct {
	source    Source
	options   Options
	ringBytes int // maximum number of bytes of each ring
	ctx       context.Context
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu   sync.Mutex
	hubs map[Selection]*Hub
}

// Options configure Hubs.
type Options struct {
	Memory int64 // maximum number of bytes of all entries
	Chosen int   // maximum number of selections with named fields
	Log    *slog.Logger
	Lag    func(time.Duration) // gets the age of each change that arrives; nil: not used
}

// common is the number of selections without named fields. There are three modes; each can be followed with no
// fields, or with all fields in one of two versions.
const common = 9

// NewHubs returns Hubs that follow the feed of the given source.
func NewHubs(source Source, o Options) *Hubs {
	h := &Hubs{source: source, options: o, ringBytes: int(o.Memory / int64(o.Chosen+common)), hubs: map[Selection]*Hub{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Close ends all hubs.
func (h *Hubs) Close() {
	h.stop()
	h.running.Wait()
}

// Hub follows one selection of the feed.
type Hub struct {
	selection Selection
	ring      *follow.Ring
	followers int         // number of followers, guarded by Hubs.mu
	end       *time.Timer // ends the hub if it stays without followers; nil while the hub has followers
	stop      context.CancelFunc
}

// Join returns the hub of a selection. The caller must call the function `leave` once. If there would be too many
// selections with named fields, Join returns ErrTooMany.
func (h *Hubs) Join(s Selection) (hub *Hub, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	hub = h.hubs[s]
	if hub == nil {
		if s.IsChosen() && !h.makeRoom() {
			return nil, nil, ErrTooMany
		}
		hub = h.start(s)
	}
	if hub.end != nil {
		hub.end.Stop()
		hub.end = nil
	}
	hub.followers++
	return hub, sync.OnceFunc(func() { h.leave(hub) }), nil
}

// makeRoom reports whether one more selection with named fields may be followed. If necessary, it ends a hub that
// nobody follows any more.
func (h *Hubs) makeRoom() bool {
	var idle *Hub
	chosen := 0
	for s, hub := range h.hubs {
		if s.IsChosen() {
			chosen++
			if hub.followers == 0 {
				idle = hub
			}
		}
	}
	if chosen < h.options.Chosen {
		return true
	}
	if idle == nil {
		return false
	}
	h.remove(idle)
	return true
}

// start makes the hub of a selection and begins to follow the feed.
func (h *Hubs) start(s Selection) *Hub {
	ctx, stop := context.WithCancel(h.ctx)
	hub := &Hub{selection: s, ring: follow.NewRing(h.ringBytes), stop: stop}
	h.hubs[s] = hub
	h.running.Go(func() { h.follow(ctx, hub) })
	return hub
}

func (h *Hubs) leave(hub *Hub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hub.followers--; hub.followers > 0 {
		return
	}
	hub.end = time.AfterFunc(linger, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if hub.followers == 0 && h.hubs[hub.selection] == hub {
			h.remove(hub)
		}
	})
}

func (h *Hubs) remove(hub *Hub) {
	hub.stop()
	delete(h.hubs, hub.selection)
}

// Selections returns the number of selections that are followed.
func (h *Hubs) Selections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.hubs)
}

// follow keeps the ring of a hub up to date until ctx ends. After an error it asks again; another asset service
// may answer then.
func (h *Hubs) follow(ctx context.Context, hub *Hub) {
	pause := retryLeast
	for ctx.Err() == nil {
		began := time.Now()
		err := h.followOnce(ctx, hub)
		if ctx.Err() != nil {
			return
		}
		h.options.Log.DebugContext(ctx, "the live feed broke off and is asked for again", "error", err)
		if time.Since(began) > retryMost {
			pause = retryLeast
		}
		sleep.For(ctx, pause/2+rand.N(pause))
		pause = min(2*pause, retryMost)
	}
}

// followOnce follows a live feed until it breaks off.
func (h *Hubs) followOnce(ctx context.Context, hub *Hub) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	live, err := h.source.Live(ctx, hub.selection)
	if err != nil {
		return fmt.Errorf("follow the feed: %w", err)
	}
	defer live.Close()
	messages := follow.NewReader(live)
	for first := true; ; first = false {
		m, err := messages.Next()
		if err != nil {
			return fmt.Errorf("follow the feed: %w", err)
		}
		if _, started := hub.ring.Upto(); !started {
			hub.ring.Restart(m.Position, m.Offset)
			continue
		}
		switch {
		case m.Kind == follow.EntryKind:
			if h.options.Lag != nil {
				h.options.Lag(time.Since(time.UnixMicro(m.Position)))
			}
			err = hub.append(messages, m)
		case m.Kind == follow.GapKind || first:
			err = h.fill(ctx, hub, m)
		default:
			hub.ring.Append(nil, m.Position, m.Offset)
		}
		if err != nil {
			return err
		}
	}
}

// append adds to the ring the entry that the message m announces.
func (hub *Hub) append(messages *follow.Reader, m follow.Message) error {
	data, err := messages.Data(follow.MaxData)
	if err != nil {
		return fmt.Errorf("read an entry of the feed: %w", err)
	}
	if data == nil {
		hub.ring.Skip(m.Position, m.Offset)
		return nil
	}
	hub.ring.Append([]*follow.Entry{{Position: m.Position, Data: event(m.Offset, data)}}, m.Position, m.Offset)
	return nil
}

// fill reads pages until the ring is complete up to the position of a message. It may need several pages,
// because an asset service perhaps does not know all changes yet.
func (h *Hubs) fill(ctx context.Context, hub *Hub, until follow.Message) error {
	for {
		upto, _ := hub.ring.Upto()
		if upto >= until.Position {
			return nil
		}
		body, err := h.source.Page(ctx, hub.selection, offsetOf(upto), pageLimit)
		if err != nil {
			return fmt.Errorf("read a page of the feed: %w", err)
		}
		err = hub.appendPage(body)
		_ = body.Close() // the body was read to its end, or err already says why not
		if err != nil {
			return err
		}
		if now, _ := hub.ring.Upto(); now == upto {
			if !sleep.For(ctx, retryLeast) {
				return ctx.Err()
			}
		}
	}
}

// appendPage adds the entries of a page to the ring.
func (hub *Hub) appendPage(body io.Reader) error {
	messages := follow.NewReader(body)
	for {
		m, err := messages.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read a page of the feed: %w", err)
		case m.Kind == follow.EntryKind:
			err = hub.append(messages, m)
		default:
			hub.ring.Append(nil, m.Position, m.Offset)
		}
		if err != nil {
			return err
		}
	}
}
