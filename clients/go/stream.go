package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"
)

const (
	eventStream   = "text/event-stream"
	silence       = 30 * time.Second // longest time without a byte (docs/contract.md, "Streams")
	defaultLimit  = 100
	longestFollow = time.Hour // the longest wait before a follower opens the next stream
	maxPage       = 4 << 20   // bytes of entries after which a page of a stream is full
)

var (
	errSilent  = errors.New("the stream is silent")
	errEnded   = errors.New("the stream ended before its first message")
	errForeign = errors.New("the stream is not the registry's")
)

// follower follows a feed by streams, and yields pages.
type follower struct {
	c        *Client
	feed     Feed // its Position is where the next stream begins
	pause    time.Duration
	yield    func(Page, error) bool
	retry    time.Duration // pause that the registry's retry asks for; 0: none
	failures int           // failures in a row; a message resets the number
	stopped  bool          // yield has returned false
}

// run follows the feed until ctx is done or the caller ends its loop over the pages.
func (f *follower) run(ctx context.Context) {
	for {
		wait, err := f.try(ctx)
		if err != nil && ctx.Err() == nil {
			wait = f.failed(err)
		}
		if f.stopped {
			return
		}
		if ctx.Err() != nil || !sleep(ctx, jitter(wait)) {
			f.yield(Page{}, ctx.Err())
			return
		}
	}
}

// failed counts a failure and returns how long to wait. It yields the error to the caller in two cases: if another try
// would get the same answer, and after every Retry.Tries failures.
func (f *follower) failed(err error) time.Duration {
	f.failures++
	over := errors.Is(err, ErrStartOver)
	if over {
		f.feed.Position = Position{}
	}
	if endOf(err) == final || f.failures%f.c.retry.Tries == 0 {
		f.stopped = !f.yield(Page{}, err)
	}
	if over && f.failures == 1 {
		return 0
	}
	wait := max(f.retry, min(firstPause<<min(f.failures-1, 10), longestPause))
	if refusal, ok := errors.AsType[*Error](err); ok {
		wait = max(wait, refusal.RetryAfter)
	}
	return min(wait, longestFollow)
}

// try opens a stream and reads it to its end. It returns the time to wait before the
// next stream.
func (f *follower) try(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(f.c.silence, func() { cancel(errSilent) })
	defer timer.Stop()
	r := f.feed.request()
	r.accept = eventStream
	resp, err := f.c.do(ctx, r, nil)
	if err != nil {
		return 0, cmp.Or(silent(ctx), err)
	}
	defer resp.Body.Close()
	resp.Body = heard{resp.Body, func() { timer.Reset(f.c.silence) }}
	wait, err := f.read(r, resp)
	if err != nil {
		return 0, cmp.Or(silent(ctx), err)
	}
	return wait, nil
}

// silent returns an error if ctx has ended because the stream was silent, and nil otherwise.
func silent(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%w for %v", errSilent, silence)
	}
	return nil
}

// heard calls its function `tell` after each read that returned bytes.
type heard struct {
	io.ReadCloser
	tell func()
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n > 0 {
		h.tell()
	}
	return n, err
}

// read yields the messages of a stream. If the registry has no streams, it answers with a page. Then read yields this
// page.
func (f *follower) read(r request, resp *http.Response) (time.Duration, error) {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err == nil && kind == eventStream && resp.StatusCode == http.StatusOK {
		return f.stream(newMessages(resp.Body), serverOf(r, resp.Header))
	}
	got, err := readAnswer(r, resp)
	if err != nil {
		return 0, startOver(err)
	}
	page, err := f.feed.open(r, got)
	if err != nil {
		return 0, err
	}
	f.hand(page)
	if page.Len() == 0 {
		return f.pause, nil
	}
	return 0, nil
}

// stream yields the messages of a stream. Messages that have arrived together make
// one page.
func (f *follower) stream(in *messages, server string) (time.Duration, error) {
	limit := cmp.Or(f.feed.Limit, defaultLimit)
	page, size := Page{Next: f.feed.Position}, 0
	for !f.stopped {
		m, err := in.next()
		if in.heard {
			f.failures = 0
		}
		f.retry = cmp.Or(m.retry, f.retry)
		switch {
		case errors.Is(err, io.EOF) && in.heard:
			return max(f.retry, firstPause), nil
		case errors.Is(err, io.EOF):
			return 0, errEnded
		case err != nil:
			return 0, fmt.Errorf("the stream broke off: %w", err)
		}
		if err := page.add(m, server, f.feed.Raw); err != nil {
			return 0, err
		}
		size += len(m.data)
		full := page.Len() >= limit || size >= maxPage
		if page.Next != f.feed.Position && (full || !in.waiting()) {
			f.hand(page)
			page, size = Page{Next: page.Next}, 0
		}
	}
	return 0, nil
}

// add adds a message to a page. It ignores events that this client does not know.
func (p *Page) add(m message, server string, raw bool) error {
	if m.data == nil || m.event != "" && m.event != "bookmark" {
		return nil
	}
	if m.id == "" {
		return fmt.Errorf("%w: a message has no offset", errForeign)
	}
	switch {
	case m.event != "":
	case raw:
		p.Raw = append(p.Raw, m.data)
	default:
		var entry Asset
		if err := json.Unmarshal(m.data, &entry); err != nil {
			return fmt.Errorf("%w: %w", errForeign, err)
		}
		p.Assets = append(p.Assets, entry)
	}
	p.Next = Position{Timestamp(m.id), server}
	return nil
}

// hand yields a page. The next stream begins after that page.
func (f *follower) hand(page Page) {
	f.failures, f.feed.Position = 0, page.Next
	f.stopped = !f.yield(page, nil)
}

// maxMessage is the maximum number of bytes of one message of a stream.
const maxMessage = 8 << 20

var errLongMessage = fmt.Errorf("a message of the stream has more than %d bytes", maxMessage)

// message is a message of an event stream. A heartbeat has no fields.
type message struct {
	event string
	id    string
	data  []byte
	retry time.Duration // 0: none
}

// messages reads a stream of server-sent events.
type messages struct {
	in    *bufio.Reader
	heard bool // the stream has sent something besides the field `retry`
}

func newMessages(in io.Reader) *messages { return &messages{in: bufio.NewReaderSize(in, 64<<10)} }

// The method `next` returns the next message. It returns io.EOF at the end of the stream. If the stream ends within a
// message, it ignores this message.
func (m *messages) next() (message, error) {
	var found message
	for size := 0; ; {
		line, err := m.line(maxMessage - size)
		if err != nil {
			return message{}, err
		}
		if len(line) == 0 {
			return found, nil
		}
		size += len(line)
		found.add(line)
		m.heard = m.heard || found.retry == 0 || found.data != nil
	}
}

// waiting reports whether a whole message has arrived, so that next does not block.
func (m *messages) waiting() bool {
	arrived, err := m.in.Peek(m.in.Buffered())
	return err == nil && bytes.Contains(arrived, []byte("\n\n"))
}

// line returns a line of at most the given size, without its end.
func (m *messages) line(most int) ([]byte, error) {
	var line []byte
	for {
		part, err := m.in.ReadSlice('\n')
		if len(line)+len(part) > most+len("\r\n") {
			return nil, errLongMessage
		}
		line = append(line, part...)
		if err == nil {
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// add adds the field of a line. It ignores comments and unknown fields.
func (m *message) add(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		m.event = string(value)
	case "id":
		m.id = string(value)
	case "data":
		if m.data != nil {
			m.data = append(m.data, '\n')
		}
		m.data = append(m.data, value...)
	case "retry":
		if milliseconds, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			m.retry = time.Duration(milliseconds) * time.Millisecond
		}
	}
}
