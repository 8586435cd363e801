package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const serverCookie = "SERVER_ID"

// Feed says which part of the feed to read (docs/contract.md, "Pages"). The zero
// value is the feed from its beginning, without test assets.
type Feed struct {
	Position   Position // entries start after this position; zero: at the beginning
	Descending bool     // newest first
	Limit      int      // maximum number of entries of a page; 0: 100
	Mode       Mode     // empty: real assets
	Fields     []string // fields of each entry besides id and dateModified; "*": all
	// Live makes Follow receive changes as they happen (docs/contract.md, "Streams").
	// Descending has no effect then.
	Live bool
	Raw  bool // pages have Raw in place of Assets
}

// Position is a place in the feed. A program stores it as JSON, and later continues
// from it.
type Position struct {
	Offset Timestamp `json:"offset"`
	// ServerID is the cookie SERVER_ID of the data that Offset belongs to. Without it, the registry does not
	// notice a Position that belongs to other data (docs/contract.md, "Server cookie").
	ServerID string `json:"serverID,omitempty"`
}

// Page is a page of the feed. An empty page means that the feed has no more entries now. With Feed.Live an empty page
// only moves the position.
type Page struct {
	Assets []Asset           // with the fields that Feed.Fields names
	Raw    []json.RawMessage // with Feed.Raw: the entries as the registry writes them
	Next   Position          // the next page
	Prev   *Position         // the page before, for reading in the other direction; nil: none
}

// Len returns the number of entries.
func (p Page) Len() int { return len(p.Assets) + len(p.Raw) }

// ErrStartOver is returned for a Position that the registry does not know, because it now has different or older data.
// A program that copies the registry then starts over (docs/contract.md, "Offsets").
var ErrStartOver = errors.New("the registry does not know this position in the feed: start over")

// Page reads the page at feed.Position. The error wraps ErrStartOver if the registry
// does not know the position.
func (c *Client) Page(ctx context.Context, feed Feed) (Page, error) {
	r := feed.request()
	got, err := c.send(ctx, r)
	if err != nil {
		return Page{}, startOver(err)
	}
	return feed.open(r, got)
}

// open decodes a page. A page must have a list. The list must not have more entries than the limit of the request. The
// page must also have the offset of the next page. An empty page need not have it if the request had no offset.
func (f Feed) open(r request, got answer) (Page, error) {
	body, err := open[json.RawMessage](r, got)
	if err != nil {
		return Page{}, err
	}
	refuse := func(reason any) (Page, error) {
		return Page{}, fmt.Errorf("%s %s: %w: %v", r.method, r.path, errNoPage, reason)
	}
	page, most := newPage(r, body), cmp.Or(max(f.Limit, 0), defaultLimit)
	var isList bool
	if f.Raw {
		page.Raw, err = listOf[json.RawMessage](body.Data, most)
		isList = page.Raw != nil
	} else {
		page.Assets, err = listOf[Asset](body.Data, most)
		isList = page.Assets != nil
	}
	switch {
	case err != nil:
		return refuse(err)
	case !isList:
		return refuse("it has no list")
	case page.Next.Offset == "" && (page.Len() > 0 || f.Position.Offset != ""):
		return refuse("it has no offset of the next page")
	}
	return page, nil
}

var errNoPage = errors.New("the answer is not a page of the registry")

// newPage returns a page without its entries.
func newPage[T any](r request, body envelope[T]) Page {
	server := serverOf(r, body.header)
	page := Page{Next: Position{body.Next.Offset, server}}
	if body.Prev != nil {
		page.Prev = &Position{body.Prev.Offset, server}
	}
	return page
}

// serverOf returns the server cookie of an answer. If the answer sets no such cookie, it returns the cookie that the
// request sent.
func serverOf(r request, header http.Header) string {
	for _, cookie := range (&http.Response{Header: header}).Cookies() {
		if cookie.Name == serverCookie {
			return cookie.Value
		}
	}
	return r.serverID
}

// startOver adds ErrStartOver to an error by which the registry refuses an offset.
func startOver(err error) error {
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Status == http.StatusNotFound {
		if _, ok := refusal.Detail("offset"); ok {
			return fmt.Errorf("%w: %w", ErrStartOver, err)
		}
	}
	return err
}

// request returns the request for the page at f.Position.
func (f Feed) request() request {
	r := read(assetsPath, f.query())
	r.serverID = f.Position.ServerID
	return r
}

func (f Feed) query() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"offset": string(f.Position.Offset), "mode": string(f.Mode), "opt_fields": strings.Join(f.Fields, ","),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.Descending {
		query.Set("descending", "1")
	}
	if f.Limit > 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	return query
}

// Pages returns the pages from feed.Position to the end. The last page is empty. A later
// call can continue from its Next. An error ends the sequence.
func (c *Client) Pages(ctx context.Context, feed Feed) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for {
			page, err := c.Page(ctx, feed)
			if !yield(page, err) || err != nil || page.Len() == 0 {
				return
			}
			feed.Position = page.Next
		}
	}
}

// defaultPause is the pause that the contract asks public clients to make (docs/contract.md, "Feed").
const defaultPause = 5 * time.Minute

// Follow returns the pages from feed.Position on. The sequence does not end: after an empty page Follow pauses, and
// then asks again. Each pause is the argument `pause` and up to a tenth more, at random; 0 stands for 5 minutes. If a
// program uses a page before it stores Page.Next, it loses no entries.
//
// After an error, the sequence continues if the caller's loop does. After ErrStartOver it continues at the beginning
// of the feed. After any other error Follow pauses, and then reads the same page again. If a second ErrStartOver comes
// before an empty page, Follow also pauses. Once ctx is done, the error of ctx is the last element.
//
// With feed.Live, changes arrive as they happen, in pages of at most feed.Limit entries and 4 MiB, or of one larger
// entry. A page without assets moves the position. Follow begins a new stream when a stream ends, breaks off or is
// silent for 30 s. It yields an error if another try would get the same answer, or after Retry.Tries failures in a
// row. Then it continues if the caller's loop does. If the registry has no streams, Follow reads pages as without
// feed.Live.
func (c *Client) Follow(ctx context.Context, feed Feed, pause time.Duration) iter.Seq2[Page, error] {
	if pause <= 0 {
		pause = defaultPause
	}
	if feed.Live {
		feed.Descending = false
		return func(yield func(Page, error) bool) { (&follower{c: c, feed: feed, pause: pause, yield: yield}).run(ctx) }
	}
	return func(yield func(Page, error) bool) {
		for again := false; ; { // again: the feed starts over, and no empty page has come since
			page, err := c.Page(ctx, feed)
			if ctx.Err() != nil {
				yield(Page{}, ctx.Err())
				return
			}
			if !yield(page, err) {
				return
			}
			over := errors.Is(err, ErrStartOver)
			if over || err == nil {
				feed.Position = page.Next // after ErrStartOver this is the beginning
			}
			wait := page.Len() == 0 && (!over || again)
			again = over || again && (err != nil || page.Len() > 0)
			if wait && !sleep(ctx, jitter(pause)) {
				yield(Page{}, ctx.Err())
				return
			}
		}
	}
}
