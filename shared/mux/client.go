package mux

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"asset-registry/shared/httpwire"
)

// ErrNotPlain is returned by RoundTrip for a request that only plain HTTP can carry. It
// was not sent.
var ErrNotPlain = errors.New("the request has fields that calls do not carry")

// errAborted is returned when the server gave an answer up.
var errAborted = errors.New("the service gave up its answer")

// errAnswered ends the sending of a body that the server does not wait for.
var errAnswered = errors.New("the service has answered before it read the body")

// Conn is the client's side of a connection. It is safe for concurrent use.
type Conn struct {
	conn net.Conn
	host string
	out  *outbox

	mu       sync.Mutex
	streams  map[uint32]*stream
	last     uint32    // the last stream that was begun
	heard    time.Time // when the last frame came
	draining bool
	sweeping bool // sweep will run
	failed   error
}

// stream is a request under way.
type stream struct {
	conn   *Conn
	number uint32
	r      *http.Request
	begun  time.Time
	in     inbound
	out    outbound
	head   chan *http.Response // holds the answer when its head came, or nil if it failed
	headed bool                // the head came; for run

	// The stream is given up when ctx ends. If that is nil, it is when until has come, or never
	// if that is zero. Both need conn.mu.
	ctx   context.Context
	until time.Time
}

// sweepEvery is how often a connection looks for streams to give up. One look for all of them
// costs less than to be told of the end of each context, which needs a timer for each deadline.
const sweepEvery = 20 * time.Millisecond

// sweep gives up the streams whose callers do not wait any more.
func (c *Conn) sweep() {
	over := map[*stream]error{}
	now := time.Now()
	c.mu.Lock()
	for _, s := range c.streams {
		if err := s.over(now); err != nil {
			over[s] = err
		}
	}
	if c.sweeping = len(c.streams) > 0; c.sweeping {
		time.AfterFunc(sweepEvery, c.sweep)
	}
	c.mu.Unlock()
	for s, err := range over {
		s.giveUp(err)
	}
}

// over returns why the stream must be given up, or nil. It needs conn.mu.
func (s *stream) over(now time.Time) error {
	switch {
	case s.ctx != nil:
		return s.ctx.Err()
	case !s.until.IsZero() && now.After(s.until):
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// outlast replaces the request's context by a time, zero for none. It does nothing once the
// context has ended.
func (s *stream) outlast(until time.Time) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.ctx != nil && s.ctx.Err() == nil {
		s.ctx, s.until = nil, until
	}
}

// Dial asks the server at the other end of conn for the protocol. Host is what requests
// name as Host. If it fails, it closes conn. It returns httpwire.ErrUnsupported for a server
// that does not know the protocol.
func Dial(ctx context.Context, conn net.Conn, host string) (*Conn, error) {
	r, err := httpwire.Upgrade(ctx, conn, host, Path, Protocol, nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &Conn{conn: conn, host: host, out: newOutbox(conn), streams: map[uint32]*stream{}, heard: time.Now()}
	go c.run(frames{r: r})
	return c, nil
}

// IsOpen reports whether new requests can be sent.
func (c *Conn) IsOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.draining && c.failed == nil
}

// Retire lets the connection end when the requests under way have their answers.
func (c *Conn) Retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.closeIfDone()
}

// closeIfDone needs mu.
func (c *Conn) closeIfDone() {
	if c.draining && len(c.streams) == 0 {
		_ = c.conn.Close() // run ends
	}
}

// run takes frames until the connection ends.
func (c *Conn) run(frames frames) {
	var err error
	for err == nil {
		var f frame
		if f, err = frames.next(); err == nil {
			err = c.take(f)
		}
	}
	if !errors.Is(err, errProtocol) {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	c.mu.Lock()
	c.failed = err
	all := c.streams
	c.streams = map[uint32]*stream{}
	c.mu.Unlock()
	for _, s := range all {
		s.fail(err)
	}
	c.out.fail(err)
	_ = c.conn.Close() // nothing can be done about an error
}

func (c *Conn) take(f frame) error {
	c.mu.Lock()
	c.heard = time.Now()
	s := c.streams[f.stream]
	c.mu.Unlock()
	if f.kind == drainFrame {
		c.drain(f.stream)
		return nil
	}
	if s == nil {
		return nil // the caller has given the stream up
	}
	ok := true
	switch f.kind {
	case headFrame:
		resp, err := parseAnswer(string(f.content), s.r)
		if err != nil {
			return err
		}
		if ok = !s.headed; ok {
			s.headed = true
			s.head <- resp
		}
	case bodyFrame:
		ok = s.headed && s.in.arrive(f.content)
	case endFrame:
		if ok = s.headed; ok {
			c.forget(s)
			s.out.fail(errAnswered)
			s.in.end(nil)
		}
	case cancelFrame:
		c.forget(s)
		s.fail(errAborted)
	case windowFrame:
		ok = s.out.widen(f.content)
	}
	if !ok {
		return fmt.Errorf("%w: a frame of kind %d for the stream %d", errProtocol, f.kind, f.stream)
	}
	return nil
}

// drain sends nothing more. Streams after last were not taken.
func (c *Conn) drain(last uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	for number, s := range c.streams {
		if number > last {
			delete(c.streams, number)
			s.fail(ErrNotTaken)
		}
	}
	c.closeIfDone()
}

func (c *Conn) forget(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s.number)
	c.closeIfDone()
}

// fail ends a stream. The caller of RoundTrip or of Read gets err.
func (s *stream) fail(err error) {
	s.out.fail(err)
	s.in.end(err)
	select {
	case s.head <- nil:
	default: // the head came before
	}
}

// giveUp tells the server that nobody waits for an answer any more.
func (s *stream) giveUp(err error) {
	c := s.conn
	c.mu.Lock()
	_, open := c.streams[s.number]
	delete(c.streams, s.number)
	// A connection that was silent all the time may be dead, so it takes nothing new.
	if errors.Is(err, context.DeadlineExceeded) && c.heard.Before(s.begun) {
		c.draining = true
	}
	c.closeIfDone()
	c.mu.Unlock()
	if open {
		// If it fails, the connection has ended.
		_, _ = c.out.offer(func(b []byte) []byte { return appendFrame(b, s.number, cancelFrame, "") })
		s.fail(err)
	}
}

// RoundTrip sends a request and returns the answer as soon as its head came. The body must
// be read to its end or closed. It returns ErrNotTaken or ErrNotPlain if the request was
// not sent, ErrLost if the connection ended, and the error of the request's context.
func (c *Conn) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s, err := c.send(r)
	if err != nil {
		return nil, err
	}
	if hasContent(r) {
		s.sendBody(r.Body)
		_ = r.Body.Close() // a RoundTripper must close it
	}
	resp := <-s.head
	if resp == nil {
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		return nil, s.in.failed
	}
	if resp.ContentLength == 0 || r.Method == http.MethodHead {
		s.outlast(time.Time{}) // the answer is whole
		resp.Body = http.NoBody
	} else {
		resp.Body = &answerBody{stream: s, left: resp.ContentLength}
	}
	return resp, nil
}

// heads holds buffers for the heads of requests.
var heads = sync.Pool{New: func() any { return new([]byte) }}

// send sends the head of a request.
func (c *Conn) send(r *http.Request) (*stream, error) {
	buffer := heads.Get().(*[]byte)
	defer heads.Put(buffer)
	head, err := appendRequest((*buffer)[:0], r, c.host)
	if err != nil {
		return nil, err
	}
	*buffer = head
	return c.begin(r, head)
}

func hasContent(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

func (c *Conn) begin(r *http.Request, head []byte) (*stream, error) {
	s := &stream{conn: c, r: r, ctx: r.Context(), begun: time.Now(), head: make(chan *http.Response, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining || c.failed != nil || len(c.streams) >= maxStreams {
		return nil, ErrNotTaken
	}
	c.last++
	s.number = c.last
	s.in.begin(s.number, c.out)
	s.out.begin(s.number, c.out)
	sent, err := c.out.offer(func(b []byte) []byte { return appendFrame(b, s.number, headFrame, head) })
	if err != nil || !sent {
		return nil, errors.Join(ErrNotTaken, err)
	}
	c.streams[s.number] = s
	if !c.sweeping {
		c.sweeping = true
		time.AfterFunc(sweepEvery, c.sweep)
	}
	return s, nil
}

// sendBody sends a request's body. If that fails, the answer tells why.
func (s *stream) sendBody(body io.Reader) {
	buffer := make([]byte, maxBody)
	for {
		n, err := body.Read(buffer)
		if n > 0 && s.out.send(nil, buffer[:n]) != nil {
			return
		}
		switch {
		case err == io.EOF:
			_ = s.conn.out.put(func(b []byte) []byte { return appendFrame(b, s.number, endFrame, "") })
			return
		case err != nil:
			s.giveUp(err)
			return
		}
	}
}

// appendRequest adds the head of a request.
func appendRequest(b []byte, r *http.Request, host string) ([]byte, error) {
	target := r.URL.RequestURI()
	if !httpwire.IsTarget(target) || !isMethod(r.Method) {
		return nil, ErrNotPlain
	}
	b = append(append(append(b, r.Method...), ' '), target...)
	b = httpwire.AppendField(append(b, "\r\n"...), "Host", []string{host})
	for name, values := range r.Header {
		if notCarried[name] || name == "Host" || name == "Content-Length" {
			continue
		}
		for _, value := range values {
			if !httpwire.IsPrintable(value) {
				return nil, ErrNotPlain
			}
		}
		b = httpwire.AppendField(b, name, values)
	}
	if hasContent(r) {
		if r.ContentLength <= 0 { // chunks
			return nil, ErrNotPlain
		}
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), r.ContentLength, 10), "\r\n"...)
	}
	if len(b) > maxHead {
		return nil, ErrNotPlain
	}
	return b, nil
}

// parseAnswer parses the head of an answer.
func parseAnswer(head string, r *http.Request) (*http.Response, error) {
	status, fields, _ := strings.Cut(head, "\r\n")
	code, err := strconv.Atoi(status)
	if err != nil || code < 200 || code > 999 {
		return nil, fmt.Errorf("%w: the status %q", errProtocol, status)
	}
	header, plain := httpwire.Fields(fields, nil)
	if !plain {
		lines := textproto.NewReader(bufio.NewReader(strings.NewReader(fields + "\r\n")))
		mime, err := lines.ReadMIMEHeader()
		if err != nil {
			return nil, errors.Join(errProtocol, err)
		}
		header = http.Header(mime)
	}
	resp := &http.Response{
		Status: status + " " + http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: -1, Request: r,
	}
	if length := header.Get("Content-Length"); length != "" {
		if resp.ContentLength, err = strconv.ParseInt(length, 10, 64); err != nil || resp.ContentLength < 0 {
			return nil, fmt.Errorf("%w: the length %q of an answer", errProtocol, length)
		}
	}
	if code == http.StatusNoContent || code == http.StatusNotModified {
		resp.ContentLength = 0
	}
	return resp, nil
}

// answerBody is the body of an answer.
type answerBody struct {
	stream *stream
	left   int64 // bytes that the length promises; negative: not known
	ended  bool
}

// Outlast replaces the request's context by end, for the rest of the body. It does nothing once
// the context has ended.
func (b *answerBody) Outlast(end time.Time) { b.stream.outlast(end) }

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.stream.in.Read(p)
	if b.left >= 0 {
		if b.left -= int64(n); b.left < 0 || b.left > 0 && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	b.ended = b.ended || err != nil
	return n, err
}

// Close implements io.Closer. It gives up an answer that was not read to its end.
func (b *answerBody) Close() error {
	if !b.ended {
		b.ended = true
		if !b.stream.in.isOver() {
			b.stream.giveUp(context.Canceled)
		}
	}
	return nil
}
