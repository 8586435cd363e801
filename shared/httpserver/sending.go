package httpserver

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// takeWithin is the time in which the peer must acknowledge or accept bytes. Otherwise the connection ends, or the
// stream of HTTP/2. The kernel's default is a quarter of an hour; streams of a client that has vanished would stay open
// so long.
const takeWithin = 15 * time.Second

// started is when the process started. Times of writes count from here.
var started = time.Now()

// progress knows for how long a write of an answer waits for the client. It is a fair.Answer.
type progress struct {
	to    http.ResponseWriter
	since atomic.Int64 // time since `started` at which the write began; 0: none is under way
}

// await notes that a write begins, and taken that it has ended.
func (s *progress) await() { s.since.Store(max(int64(time.Since(started)), 1)) }

func (s *progress) taken() { s.since.Store(0) }

// Waits returns how long the write that is under way has waited for the client, or 0 if none is.
func (s *progress) Waits() time.Duration {
	since := s.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(started) - time.Duration(since)
}

// Cut ends the answer: its write fails. The handler of the answer must not have returned.
func (s *progress) Cut() {
	_ = http.NewResponseController(s.to).SetWriteDeadline(started) // fails only without a connection, as in tests
}

// Sending returns what is known about the answer that is written to w at the edge.
func Sending(w http.ResponseWriter) interface {
	Waits() time.Duration
	Cut()
} {
	for {
		if edge, ok := w.(*firstByte); ok {
			return edge
		}
		layer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return &progress{to: w} // nothing is written through it, so it never waits
		}
		w = layer.Unwrap()
	}
}

// openStreams counts the streams of HTTP/2 of this process that have not ended.
var openStreams atomic.Int64

// While more streams than manyStreams are open, a client has takeSoon for the end of an answer.
const (
	manyStreams = 1000
	takeSoon    = time.Second
)

// ending bounds the time for which an answer of HTTP/2 stays open after its handler has returned. If the window of its
// stream is shut, the end of the answer waits in the server, and nothing else bounds the number of such streams.
func ending(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			next.ServeHTTP(w, r)
			return
		}
		openStreams.Add(1)
		context.AfterFunc(r.Context(), func() { openStreams.Add(-1) })
		next.ServeHTTP(w, r)
		within := takeWithin
		if openStreams.Load() > manyStreams {
			within = takeSoon
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within)) // fails if the client has left
	})
}

// workKey is the key under which the context of a request has its *work.
type workKey struct{}

// work sums what CountWork counts for one request from outside.
type work struct {
	mu   sync.Mutex
	sum  int64
	told http.Header // the header of the answer, if a caller in another process reads the sum there; else nil
}

// CountWork counts work for the request of a context, such as bytes that were read and decoded. Other work counts as
// the bytes of JSON that could be decoded in the same time. The edge charges the work to the client
// (docs/contract.md, "Rate limits"). The goroutine of the handler calls CountWork, before the answer begins.
func CountWork(ctx context.Context, bytes int64) {
	w, _ := ctx.Value(workKey{}).(*work)
	if w == nil || bytes <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sum += bytes
	if w.told != nil {
		w.told[WorkHeader] = []string{strconv.FormatInt(w.sum, 10)}
	}
}

// ReceiveWork counts the work that the answer of another service tells, and removes it from the answer's header.
func ReceiveWork(ctx context.Context, answer http.Header) {
	if told := answer[WorkHeader]; len(told) > 0 {
		delete(answer, WorkHeader)
		bytes, _ := strconv.ParseInt(told[0], 10, 64) // no number counts as none: only our own services send the header
		CountWork(ctx, bytes)
	}
}

// WorkOf returns the work that was counted for the request of a context, in bytes.
func WorkOf(ctx context.Context) int64 {
	w, _ := ctx.Value(workKey{}).(*work)
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sum
}
