package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
	"asset-registry/shared/telemetry"
)

// Limits of streams (docs/contract.md, "Streams").
const (
	maxWait        = 60 * time.Second
	maxSelections  = 32       // maximum number of selections with named fields that one gateway follows
	streamBytes    = 48 << 10 // memory of one stream; measured: 42 KiB
	streamShare    = 8        // open streams may use 1/8 of the memory, and the kept entries another 1/8
	leastStreams   = 512
	keyShare       = 4                // 1/4 of the streams and of the selections is kept for callers with an API key
	answerAfterAll = 30 * time.Second // time in which a client must receive the page after a long poll
	limitWithin    = time.Second      // time for a decision of the rate limits
)

// feeds has what a gateway needs to send the feed while it grows.
type feeds struct {
	hubs      *stream.Hubs
	clients   *concurrency.Shares // open streams and long polls
	anonymous *concurrency.Shares // open streams and long polls without an API key, counted as one client
	chosen    *selections         // the selections with named fields
	slow      metric.Int64Counter // counts streams that ended because the client did not read
	refused   metric.Int64Counter
}

// openFeeds makes the hubs, the limits and the metrics of the streams.
func (a *API) openFeeds() {
	c := a.config
	most := max(int(c.Memory/streamShare/streamBytes), leastStreams)
	a.feeds.clients = concurrency.NewShares(c.Settings.ClientStreams, most)
	a.feeds.anonymous = concurrency.NewShares(most-most/keyShare, most)
	a.feeds.chosen = newSelections()
	meter := c.Meter
	lag := telemetry.Durations(meter, "registry.gateway.feed.lag",
		"Age of a change when it reaches this gateway, while somebody follows the feed.",
		0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
	a.feeds.hubs = stream.NewHubs(a.config.Assets, stream.Options{
		Memory: c.Memory / streamShare, Chosen: maxSelections, Log: c.Log,
		Lag: func(age time.Duration) { lag.Record(context.Background(), age.Seconds()) },
	})
	a.feeds.slow = telemetry.Counter(meter, "registry.gateway.streams.slow", "{stream}",
		"Streams that ended because the client did not read what was sent.")
	a.feeds.refused = telemetry.Counter(meter, "registry.gateway.streams.refused", "{stream}",
		"Streams and long polls that a limit refused.")
	// The counters begin with 0. Otherwise a query with rate() would miss the first event.
	a.feeds.slow.Add(context.Background(), 0)
	a.feeds.refused.Add(context.Background(), 0)
	observed := telemetry.Observe(meter)
	open := observed.Gauge("registry.gateway.streams", "{stream}", "Open streams and long polls.")
	a.unregister = observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(open, int64(a.feeds.clients.Held()))
	})
}

// asked returns what a request for a page of the feed asks for besides the page: a stream in a format, a time to wait
// while the page is empty, or neither. If the query is malformed, asked returns neither. The answer with the page
// reports the error.
func asked(r *http.Request) (format stream.Format, wait time.Duration, query url.Values) {
	format = stream.FormatOf(r.Header.Get("Accept"))
	prefer := r.Header.Get("Prefer")
	if format == stream.None && prefer == "" && !strings.Contains(r.URL.RawQuery, "wait=") {
		return stream.None, 0, nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || !isText(query) {
		return stream.None, 0, nil
	}
	if format == stream.None && query.Get("descending") == "" {
		wait = waitOf(query.Get("wait"), prefer)
	}
	return format, wait, query
}

func isText(query url.Values) bool {
	for name, values := range query {
		if !utf8.ValidString(name) || !utf8.ValidString(values[0]) {
			return false
		}
	}
	return true
}

// waitOf returns how long a client wants to wait. The query parameter "wait" says this. Without it, the header Prefer
// says this (RFC 7240, 4.3).
func waitOf(parameter, prefer string) time.Duration {
	for item := range strings.FieldsFuncSeq(prefer, func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		if strings.EqualFold(name, "wait") && parameter == "" {
			parameter = strings.Trim(value, `"`)
		}
	}
	seconds, err := strconv.ParseUint(parameter, 10, 63)
	if errors.Is(err, strconv.ErrRange) {
		return maxWait
	}
	return time.Duration(min(seconds, uint64(maxWait/time.Second))) * time.Second
}

// selectionOf returns the selection of the feed that the parameters of a request name. If two requests want the
// same selection, the results are equal.
func selectionOf(version string, query url.Values) stream.Selection {
	selection := stream.Selection{Version: version}
	if mode := query.Get("mode"); mode == "test" || mode == "_all_" {
		selection.Mode = mode
	}
	names := strings.Split(query.Get("opt_fields"), ",")
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == "" || name == "id" || name == "dateModified" // each entry has id and dateModified anyway
	})
	slices.Sort(names)
	selection.Fields = strings.Join(slices.Compact(names), ",")
	if slices.Contains(names, "*") {
		selection.Fields = "*"
	}
	if selection.Fields == "" {
		selection.Version = routes.Current // without fields, the entries of all versions are equal
	}
	return selection
}

// isLive reports whether a request for the feed wants a stream or a long poll.
func isLive(r *http.Request) bool {
	format, wait, _ := asked(r)
	return format != stream.None || wait > 0
}

// follow answers a request for a stream of the feed. A request for a long poll waits for a change before it gets
// its page. All other requests for the feed pass. The number of streams and long polls of each client is limited.
// The request must have passed identify. After a long poll, the page is limited as any other page.
func (a *API) follow(r route) step {
	return func(next handler) handler {
		return func(c *gin.Context) error {
			c.Writer.Header().Add("Vary", "Accept")
			format, wait, query := asked(c.Request)
			if format == stream.None && wait == 0 {
				return next(c)
			}
			held, refusal := a.takePlace(c)
			if refusal != nil {
				return refusal
			}
			defer func() { held.release() }()
			if format == stream.None {
				a.wait(c, query, wait)
				held.release()
				held = nil
				if c.Request.Context().Err() != nil {
					panic(http.ErrAbortHandler) // the client has left
				}
				// The page has the time of any page, and the back end gets nothing of the wait.
				most := cmp.Or(a.config.Settings.ListTimeout, a.config.Timeout)
				return within(c, most, func(c *gin.Context) error { return a.admit(c, r, next) })
			}
			return a.stream(c, r.version, format, query)
		}
	}
}

// takePlace gives a request one of the places for streams and long polls, and returns the functions that free
// the place. Some of the places are kept for callers with an API key.
func (a *API) takePlace(c *gin.Context) (held, error) {
	var taken held
	of := a.nameOf(c)
	if refusal := a.admitStream(a.feeds.clients.Enter(of)); refusal != nil {
		return nil, refusal
	}
	taken.add(func() { a.feeds.clients.Leave(of) })
	if client(c).Identity.KeyID != "" {
		return taken, nil
	}
	if a.feeds.anonymous.Enter("") != concurrency.Admitted {
		taken.release()
		return nil, a.admitStream(concurrency.AllUsed)
	}
	taken.add(func() { a.feeds.anonymous.Leave("") })
	return taken, nil
}

// admitStream returns the fault for a stream that was refused, or nil if the stream was admitted.
func (a *API) admitStream(refusal concurrency.Refusal) error {
	if refusal == concurrency.Admitted {
		return nil
	}
	a.feeds.refused.Add(context.Background(), 1)
	if refusal == concurrency.ShareUsed {
		f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
			"You have %d streams and long polls open; close one first.", a.config.Settings.ClientStreams)
		f.RetryAfter = time.Second
		return f
	}
	return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many streams now; read pages, or try again.")
}

// wait waits until the page that the request asks for has an entry. The argument "most" is the longest time to wait.
func (a *API) wait(c *gin.Context, query url.Values, most time.Duration) {
	hub, leave, err := a.feeds.hubs.Join(stream.Selection{Version: routes.Current, Mode: selectionOf("", query).Mode})
	if err != nil {
		return // do not wait: the page is answered immediately
	}
	defer leave()
	httpserver.Long(c)
	control := http.NewResponseController(c.Writer)
	end := time.Now().Add(most)
	_ = control.SetReadDeadline(time.Time{}) // only a connection has deadlines, so in tests this fails
	_ = control.SetWriteDeadline(end.Add(answerAfterAll))
	ctx, cancel := context.WithDeadline(c.Request.Context(), end)
	defer cancel()
	f := a.follower(c, hub, query)
	f.Wait(ctx)
}

// follower returns a follower for the client of a request.
func (a *API) follower(c *gin.Context, hub *stream.Hub, query url.Values) *stream.Follower {
	return &stream.Follower{
		Source:   a.config.Assets.For(a.nameOf(c)),
		Hub:      hub,
		Offset:   query.Get("offset"),
		Draining: a.ending,
		Enter:    func() bool { return a.places.assets.Enter(concurrency.AnonymousRead) },
		Leave:    a.places.assets.Leave,
		Again:    a.morePages(client(c)),
	}
}

// morePages returns a function for a stream that begins in the past. The stream calls the function before it
// reads a further page. The function counts the page as a request of the client, and reports whether the rate limits
// permit it.
func (a *API) morePages(of ratelimit.Client) func() bool {
	return func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), limitWithin)
		defer cancel()
		err := a.config.Limits.Admit(ctx, http.Header{}, ratelimit.Request{Class: routes.List, Client: of})
		a.config.Limits.Count(routes.List, err)
		return err == nil
	}
}

// stream sends the feed in a format until the client leaves, the stream breaks off, or the gateway ends.
func (a *API) stream(c *gin.Context, v routes.Version, format stream.Format, query url.Values) error {
	selection := selectionOf(v.Target, query)
	if selection.IsChosen() {
		leave, admitted := a.feeds.chosen.enter(a.nameOf(c), client(c).Identity.KeyID != "", selection)
		if !admitted {
			return a.tooManySelections()
		}
		defer leave()
	}
	hub, leave, err := a.feeds.hubs.Join(selection)
	if err != nil {
		return a.tooManySelections()
	}
	defer leave()
	f := a.follower(c, hub, query)
	f.Format, f.Offset = format, cmp.Or(c.GetHeader(lastEventID), f.Offset)
	ctx := c.Request.Context()
	if err := f.Open(ctx, c.Writer.Header()); err != nil {
		if stream.IsCrowded(err) {
			return a.crowded(c)
		}
		return err
	}
	httpserver.Long(c)
	c.Status(http.StatusOK)
	if c.Request.Method == http.MethodHead {
		f.Close()
		c.Writer.WriteHeaderNow()
		return nil
	}
	if err = f.Run(ctx, c.Writer); err == nil || ctx.Err() != nil {
		return nil
	}
	if errors.Is(err, stream.ErrSlow) {
		a.feeds.slow.Add(ctx, 1)
	}
	_ = c.Error(err)            // for the log; gin returns its argument
	panic(http.ErrAbortHandler) // ends the connection, so that no client believes the stream is complete
}

// held has functions that free what a request holds.
type held []func()

func (h *held) add(free func()) { *h = append(*h, free) }

// release calls the functions in reverse order.
func (h *held) release() {
	for _, free := range slices.Backward(*h) {
		free()
	}
}

// lastEventID is the header in which the client of an event stream says where to continue.
const lastEventID = "Last-Event-ID"

// tooManySelections returns the fault for a stream whose list of fields cannot be followed, because the gateway
// already follows too many other lists.
func (a *API) tooManySelections() error {
	a.feeds.refused.Add(context.Background(), 1)
	return fault.New(fault.Unavailable, fault.Query, "opt_fields",
		"The feed is followed with too many different lists of fields now. Ask for all fields (*) or for none.")
}
