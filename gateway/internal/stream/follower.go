package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"asset-registry/shared/follow"
	"asset-registry/shared/httpserver"
)

const (
	heartbeat  = 15 * time.Second // longest time without a message
	takeWithin = 10 * time.Second // time in which a client must receive what is sent
	batchBytes = 64 << 10         // bytes of entries that are sent before the deadline is renewed
	retryFirst = time.Second      // how long a client should wait before it connects again
	retryDrain = 4 * time.Second  // longest additional wait of a client if the server ends
	pageAgain  = time.Second      // pause between pages while the ring does not have what a follower needs
)

// ErrSlow is returned by Run if the client does not read what is sent.
var ErrSlow = errors.New("the client is too slow")

// ErrCut is returned by Run if the stream ended within a message. The caller must break the connection off.
var ErrCut = errors.New("the stream was cut off")

// Follower is one client that follows the feed. Its hub must be joined before Run is called.
type Follower struct {
	Source    Source
	Hub       *Hub
	Format    Format
	Offset    string          // the offset at which the client begins, as the client wrote it
	Draining  <-chan struct{} // closed when the server ends; nil: never
	Enter     func() bool     // called before each request for a page; Leave is called at the end of the request
	Leave     func()
	Again     func() bool   // called before each page except the first; false: no page is read now; nil: always true
	Heartbeat time.Duration // longest time without a message; 0: 15 s

	first   page
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool   // a page has told the position of Offset, so the field `at` has a value
	at      int64  // everything up to this position was sent
	mark    string // offset of the position in the field `at`; "" if the client already has this offset
}

// errCrowded is the error of Open if Enter does not admit the first page.
var errCrowded = errors.New("too many requests are under way")

// Open asks for the first page and sets the headers of the answer. If the asset service refuses the page, Open
// returns its fault. If Enter returns false, the error of Open is one for which IsCrowded returns true. If Open
// returns nil, the caller must call Run or Close.
func (f *Follower) Open(ctx context.Context, header http.Header) (err error) {
	if f.first, err = f.open(ctx, f.Offset); err != nil {
		return err
	}
	header.Set("Content-Type", string(f.Format))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // otherwise nginx would hold messages back
	return nil
}

// Close closes the page that Open has opened, for a caller that does not call Run.
func (f *Follower) Close() { f.first.close() }

// Run sends the feed to w until ctx ends, the server drains, or the client is too slow.
func (f *Follower) Run(ctx context.Context, w http.ResponseWriter) error {
	f.w, f.control = w, http.NewResponseController(w)
	// This fails if a test records the answer: only a real connection has deadlines.
	_ = f.control.SetReadDeadline(time.Time{})
	if err := f.send(f.Format.retry(retryFirst)); err != nil {
		f.Close()
		return err
	}
	first := f.first
	f.first = page{} // so that the page does not stay in memory
	if _, err := f.copyPage(first); err != nil {
		return err
	}
	return f.follow(ctx)
}

// follow sends everything that comes after the first page.
func (f *Follower) follow(ctx context.Context) error {
	beat := time.NewTimer(f.interval())
	defer beat.Stop()
	for {
		view := f.Hub.ring.Read(f.at, batchBytes)
		if !f.begun { // the position of Offset is not known yet, so the ring cannot be used
			view.Release()
			view = follow.View{Changed: view.Changed}
		}
		if len(view.Entries) > 0 {
			err := f.sendEntries(view)
			view.Release()
			if err != nil {
				return err
			}
			beat.Reset(f.interval())
			continue
		}
		var again <-chan time.Time
		if view.Covered {
			f.pass(view.Upto, view.Offset)
		} else {
			moved, err := f.readPage(ctx)
			if err != nil {
				return err
			}
			if moved {
				continue
			}
			again = time.After(pageAgain/2 + rand.N(pageAgain))
		}
		select {
		case <-view.Changed:
		case <-again:
		case <-beat.C:
			if err := f.beat(); err != nil {
				return err
			}
			beat.Reset(f.interval())
		case <-f.Draining:
			return f.drain()
		case <-ctx.Done():
			return nil
		}
	}
}

// drain sends the last messages. If the follower has passed positions without an entry, it first sends a bookmark.
// The last message tells the client when it may connect again.
func (f *Follower) drain() error {
	last := f.Format.retry(retryFirst + rand.N(retryDrain))
	if f.mark != "" {
		last = f.Format.bookmark(f.mark) + last
	}
	return f.send(last)
}

// interval returns the longest time without a message.
func (f *Follower) interval() time.Duration { return cmp.Or(f.Heartbeat, heartbeat) }

// pass moves the follower to a position without sending an entry.
func (f *Follower) pass(upto int64, offset string) {
	if upto > f.at && offset != "" {
		f.at, f.mark = upto, offset
	}
}

// sendEntries sends the entries of a ring.
func (f *Follower) sendEntries(view follow.View) error {
	_ = f.control.SetWriteDeadline(time.Now().Add(takeWithin))
	for _, e := range view.Entries {
		if _, err := f.w.Write(f.Format.entry(e.Data)); err != nil {
			return f.cut(err)
		}
		f.at, f.mark = e.Position, ""
	}
	return f.flush()
}

// beat sends a bookmark if the follower has passed positions without an entry, otherwise a heartbeat.
func (f *Follower) beat() error {
	if f.mark == "" {
		return f.send(f.Format.heartbeat())
	}
	text := f.Format.bookmark(f.mark)
	f.mark = ""
	return f.send(text)
}

func (f *Follower) send(text string) error {
	_ = f.control.SetWriteDeadline(time.Now().Add(takeWithin))
	if _, err := io.WriteString(f.w, text); err != nil {
		return f.cut(err)
	}
	return f.flush()
}

func (f *Follower) flush() error {
	if err := f.control.Flush(); err != nil {
		return f.cut(err)
	}
	return nil
}

// cut returns the error of a stream that has ended because a write failed.
func (f *Follower) cut(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrSlow, err)
	}
	return fmt.Errorf("%w: %w", ErrCut, err)
}

// page is an open page, and the function that frees what it holds.
type page struct {
	io.ReadCloser
	leave func()
}

func (p page) close() {
	_ = p.Close() // needs no check: the page was read to its end, or its error is known
	p.leave()
}

// open asks for a page after an offset.
func (f *Follower) open(ctx context.Context, offset string) (page, error) {
	if !f.Enter() {
		return page{}, errCrowded
	}
	body, err := f.Source.Page(ctx, f.Hub.selection, offset, pageLimit)
	if err != nil {
		f.Leave()
		return page{}, err
	}
	return page{body, f.Leave}, nil
}

// readPage sends the next page. It reports whether the follower moved on. If the page cannot be opened, the
// follower asks for it again later.
func (f *Follower) readPage(ctx context.Context) (moved bool, err error) {
	if f.Again != nil && !f.Again() {
		return false, nil
	}
	p, err := f.open(ctx, f.next())
	if err != nil {
		return false, nil
	}
	return f.copyPage(p)
}

// The method `next` returns the offset of the next page.
func (f *Follower) next() string {
	if !f.begun {
		return f.Offset
	}
	return offsetOf(f.at)
}

// copyPage sends the entries of a page and closes the page.
func (f *Follower) copyPage(p page) (moved bool, err error) {
	defer p.close()
	before := f.at
	to := httpserver.NewSender(f.w, httpserver.DefaultPace)
	messages := follow.NewReader(p)
	for {
		m, err := messages.Next()
		if err != nil { // the page has ended, or broke off between two messages
			return f.at > before, f.flush()
		}
		f.begun = true
		if m.Kind != follow.EntryKind {
			f.pass(m.Position, m.Offset)
			continue
		}
		if err := f.copyEntry(to, messages, m); err != nil {
			return false, f.cut(err)
		}
		f.at, f.mark = m.Position, ""
	}
}

// copyEntry sends an entry, which may be of any size.
func (f *Follower) copyEntry(to io.Writer, messages *follow.Reader, m follow.Message) error {
	if _, err := io.WriteString(to, f.Format.entryHead(m.Offset)); err != nil {
		return err
	}
	if err := messages.CopyData(to); err != nil {
		return err
	}
	_, err := io.WriteString(to, f.Format.entryEnd())
	return err
}

// IsCrowded reports whether an error of Open means that the gateway has too many concurrent requests.
func IsCrowded(err error) bool { return errors.Is(err, errCrowded) }

// Wait waits until the feed has an entry after the client's offset, or ctx ends. It returns immediately if the
// asset service refuses the offset or does not answer.
func (f *Follower) Wait(ctx context.Context) {
	for ctx.Err() == nil {
		view := f.Hub.ring.Read(f.at, 1)
		view.Release()
		var again <-chan time.Time
		switch {
		case len(view.Entries) > 0 && f.begun:
			return
		case view.Covered && f.begun:
			f.pass(view.Upto, view.Offset)
		default:
			before, begun := f.at, f.begun
			if f.hasMore(ctx) {
				return
			}
			if f.at > before || f.begun && !begun {
				continue
			}
			again = time.After(pageAgain/2 + rand.N(pageAgain))
		}
		select {
		case <-view.Changed:
		case <-again:
		case <-f.Draining:
			return
		case <-ctx.Done():
		}
	}
}

// hasMore reports whether there is an entry after the client's position. It also returns true if the asset
// service does not answer, or says that the client must go on elsewhere.
func (f *Follower) hasMore(ctx context.Context) bool {
	if f.begun && f.Again != nil && !f.Again() {
		return false
	}
	if !f.Enter() {
		return true
	}
	defer f.Leave()
	body, err := f.Source.Page(ctx, f.Hub.selection, f.next(), 1)
	if err != nil {
		return true
	}
	defer body.Close()
	messages := follow.NewReader(body)
	for {
		m, err := messages.Next()
		switch {
		case err == io.EOF:
			return false
		case err != nil || m.Kind != follow.BookmarkKind:
			return true
		}
		f.begun = true
		f.pass(m.Position, m.Offset)
	}
}
