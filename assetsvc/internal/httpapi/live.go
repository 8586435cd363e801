package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/live"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/fault"
	"asset-registry/shared/follow"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
)

const (
	liveBeat   = 3 * time.Second  // longest time between two messages
	liveWithin = 10 * time.Second // longest time that a gateway may take to read the sent bytes
	liveBatch  = 256 << 10        // bytes of entries to send before a new deadline is set
)

// RouteFeed adds the routes with which gateways follow the feed. The answers are messages of package follow.
// Live feeds end when the channel `ending` is closed.
func (a *API) RouteFeed(engine *gin.Engine, signer *identity.Signer, w *live.Watcher, ending <-chan struct{}) {
	for _, v := range publicVersions(a.hidden) {
		page := func(c *gin.Context) error { return a.feedPage(c, v) }
		feed := func(c *gin.Context) error { return a.feedLive(c, v, w, ending) }
		r := engine.Group("", httpserver.Identify(signer), caching)
		r.GET(follow.PagePath(string(v.name)), httpserver.Handle(page))
		r.GET(follow.LivePath(string(v.name)), httpserver.Handle(feed))
	}
}

// IsLive reports whether a request follows the feed until its client leaves.
func IsLive(c *gin.Context) bool {
	return slices.ContainsFunc(routes.Targets(), func(v string) bool { return c.FullPath() == follow.LivePath(v) })
}

// PrintOffset returns a function that prints a position as an offset in a zone.
func PrintOffset(zone *time.Location) func(position int64) string {
	return func(position int64) string { return printPosition(position, zone) }
}

// feedPage answers with a page of the feed: a bookmark at the offset of the request, the entries, and a
// bookmark that says up to which position the entries are complete. A gap to the end of the feed stands in place of
// a far offset (isFar).
func (a *API) feedPage(c *gin.Context, v version) error {
	params, _, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	names := strings.Split(params.Get("opt_fields"), ",")
	q, err := parseListing(params)
	if err != nil {
		return err
	}
	inside, page, leave, err := a.readPage(c, v, q, names, a.registry.List)
	if err != nil {
		return err
	}
	defer leave()
	body := follow.AppendBookmark(nil, q.Offset, printPosition(q.Offset, a.zone))
	if isFar(q, page) {
		body = follow.AppendGap(nil, page.Upto, printPosition(page.Upto, a.zone))
	}
	var data []byte
	for _, e := range page.Entries {
		if data, err = v.listed(data[:0], e, wantedOf(names), a.zone); err != nil {
			return fmt.Errorf("list asset %s: %w", e.ID, err)
		}
		body = follow.AppendEntry(body, e.Position, printPosition(e.Position, a.zone), data)
	}
	body = follow.AppendBookmark(body, page.Upto, printPosition(page.Upto, a.zone))
	c.Header("Content-Type", follow.ContentType)
	return inside.send(c, http.StatusOK, body)
}

// feedLive sends a bookmark at the present end of the feed, and then all later changes.
func (a *API) feedLive(c *gin.Context, v version, w *live.Watcher, ending <-chan struct{}) error {
	params, _, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	q, err := parseListing(params)
	if err != nil {
		return err
	}
	selection := live.Selection{Version: string(v.name), Mode: q.Mode, Fields: params.Get("opt_fields")}
	ring, leave, err := w.Join(selection, v.encode(selection.Fields, a.zone))
	if errors.Is(err, live.ErrTooMany) {
		const says = "The feed is followed in too many selections of fields now; ask for all fields or for none."
		return fault.New(fault.Unavailable, fault.Query, "opt_fields", says)
	}
	if err != nil {
		return err
	}
	defer leave()
	httpserver.Long(c)
	c.Header("Content-Type", follow.ContentType)
	c.Header("Cache-Control", "no-store")
	s := &liveStream{w: c.Writer, control: http.NewResponseController(c.Writer), ring: ring, ending: ending,
		print: PrintOffset(a.zone)}
	_ = s.control.SetReadDeadline(time.Time{}) // fails only for a writer without read deadlines
	if err := s.run(c.Request.Context()); err != nil && c.Request.Context().Err() == nil {
		_ = c.Error(fmt.Errorf("send the live feed: %w", err)) // not sent to the gateway: the log shows it
		panic(http.ErrAbortHandler)
	}
	return nil
}

// liveStream sends the entries of a ring to one gateway.
type liveStream struct {
	w       io.Writer
	control *http.ResponseController
	ring    *follow.Ring
	ending  <-chan struct{} // closed when the service ends
	print   func(int64) string
	at      int64 // all entries up to this position were sent
}

// run sends messages until ctx ends or the server drains. The first message is a bookmark.
func (s *liveStream) run(ctx context.Context) error {
	for begun := false; ; {
		view := s.ring.Read(s.at, liveBatch)
		upto, started := view.Upto, view.Covered || view.From > 0
		var err error
		switch {
		case !started:
		case !begun:
			begun, s.at = true, upto
			err = s.send(follow.AppendBookmark(nil, upto, s.print(upto)))
		case !view.Covered:
			s.at = view.From
			err = s.send(follow.AppendGap(nil, view.From, s.print(view.From)))
			view.Changed = closed
		case len(view.Entries) > 0:
			s.at = upto
			err = s.sendEntries(view)
			view.Changed = closed
		case upto > s.at:
			s.at = upto
			err = s.send(follow.AppendBookmark(nil, upto, s.print(upto)))
		}
		view.Release()
		if err != nil {
			return err
		}
		select {
		case <-view.Changed:
		case <-time.After(liveBeat):
			if begun {
				err = s.send(follow.AppendBookmark(nil, s.at, s.print(s.at)))
			}
		case <-s.ending:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// closed is a closed channel: a select on it continues immediately.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (s *liveStream) sendEntries(view follow.View) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(liveWithin))
	for _, e := range view.Entries {
		if _, err := s.w.Write(e.Data); err != nil {
			return err
		}
	}
	return s.control.Flush()
}

func (s *liveStream) send(line []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(liveWithin))
	if _, err := s.w.Write(line); err != nil {
		return err
	}
	return s.control.Flush()
}

// WebhookFeed implements webhook.Feed for a registry. Its entries have the same form as the entries of a
// listing.
type WebhookFeed struct {
	feed     live.Feed
	watcher  *live.Watcher
	zone     *time.Location
	versions []version
}

// NewWebhookFeed returns a feed without the fields of the hidden groups. It prints times in zone, a constant
// offset.
func NewWebhookFeed(feed live.Feed, w *live.Watcher, zone *time.Location, hidden []asset.Group) *WebhookFeed {
	return &WebhookFeed{feed: feed, watcher: w, zone: zone, versions: publicVersions(hidden)}
}

// fieldsOf returns the fields of a selection, as a value of the parameter opt_fields.
func fieldsOf(s webhook.Selection) string {
	if s.Whole {
		return "*"
	}
	return ""
}

// encoder returns a function that encodes an entry in the version, and with the fields, that a selection asks for.
func (f *WebhookFeed) encoder(s webhook.Selection) (live.Encode, error) {
	i := slices.IndexFunc(f.versions, func(v version) bool { return string(v.name) == s.Version })
	if i < 0 {
		return nil, fmt.Errorf("webhooks get no version %q", s.Version)
	}
	return f.versions[i].encode(fieldsOf(s), f.zone), nil
}

func (f *WebhookFeed) Follow(s webhook.Selection) (ring *follow.Ring, leave func(), err error) {
	encode, err := f.encoder(s)
	if err != nil {
		return nil, nil, err
	}
	selection := live.Selection{Version: s.Version, Mode: modeOf(s.Mode), Fields: fieldsOf(s), Terms: s.Terms}
	return f.watcher.Join(selection, encode)
}

func (f *WebhookFeed) Page(
	ctx context.Context, s webhook.Selection, filters assetfilter.Set, after int64,
) (webhook.Page, error) {
	encode, err := f.encoder(s)
	if err != nil {
		return webhook.Page{}, err
	}
	q := registry.Query{Offset: after, Limit: webhook.MaxEntries, Mode: modeOf(s.Mode)}
	if s.Whole || !filters.IsEmpty() {
		q.Bodies = webhook.MaxBytes
	}
	page, err := f.feed.List(ctx, q)
	if err != nil {
		return webhook.Page{}, err
	}
	shown := webhook.Page{Upto: page.Upto}
	if n := len(page.Entries); n > 0 {
		shown.Upto = page.Entries[n-1].Position
	}
	for _, e := range page.Entries {
		met, err := meets(e, filters)
		if err != nil {
			return webhook.Page{}, err
		}
		if !met {
			continue
		}
		data, err := encode(nil, e)
		if err != nil {
			return webhook.Page{}, fmt.Errorf("list asset %s: %w", e.ID, err)
		}
		shown.Entries = append(shown.Entries, webhook.Entry{Position: e.Position, Data: data})
	}
	return shown, nil
}

// The limits of one call of the function `find`.
const (
	findEntries = 256
	findBytes   = 256 << 10 // maximum number of bytes of assets
)

func (f *WebhookFeed) Find(
	ctx context.Context, mode string, filters assetfilter.Set, after int64,
) (webhook.Found, error) {
	return find(ctx, f.feed, mode, filters, after)
}

func find(
	ctx context.Context, in live.Feed, mode string, filters assetfilter.Set, after int64,
) (found webhook.Found, err error) {
	q := registry.Query{Offset: after, Limit: findEntries, Mode: modeOf(mode), Bodies: findBytes}
	page, err := in.List(ctx, q)
	if err != nil {
		return found, err
	}
	for _, e := range page.Entries {
		met, err := meets(e, filters)
		if err != nil {
			return found, err
		}
		if met {
			return webhook.Found{First: e.Position, Upto: found.Upto, More: true}, nil
		}
		found.Upto, found.More = e.Position, true
	}
	if !found.More {
		found.Upto = page.Upto
	}
	return found, nil
}

// meets reports whether an asset meets filters.
func meets(e registry.Entry, filters assetfilter.Set) (bool, error) {
	if filters.IsEmpty() {
		return true, nil
	}
	terms, err := assetfilter.Terms(e.Body)
	if err != nil {
		return false, fmt.Errorf("filter asset %s: %w", e.ID, err)
	}
	return filters.Meets(terms), nil
}

func (f *WebhookFeed) Offset(position int64) string { return printPosition(position, f.zone) }
