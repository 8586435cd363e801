package httpserver

import (
	"context"
	"net/http"
	"strconv"
	"sync"
)

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
