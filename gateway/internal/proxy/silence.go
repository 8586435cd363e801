package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// silence is how long a service may neither take a byte of a request nor give one of its answer (docs/contract.md,
	// "Limits"). It holds for requests without a deadline, and for answers that may outlast their deadline.
	// The live feed has the same bound.
	silence = 10 * time.Second

	// storing is how often a service that is ready may be silent after it took a whole body. It may store the body in a
	// bucket or on a disk that is slow. A service on a store that hangs ends the request by itself.
	storing = 4
)

// errSilent is the cause of the error when a service takes and sends nothing for too long.
var errSilent = errors.New("the service takes and sends nothing")

// vigil ends a request at a service that is silent. It has the body of the request: while the body is read from the
// client, the service has nothing to do, so the time stops.
type vigil struct {
	io.ReadCloser
	timer  *time.Timer
	taken  atomic.Bool // the service has the whole body
	cancel context.CancelCauseFunc
}

// watch returns a copy of a request that ends if the service is silent. The caller must call the function `end` once
// the answer begins, and the function `cancel` after the answer. The parameter `isReady` reports whether the service
// can do its work.
func watch(r *http.Request, isReady func() bool) (watched *http.Request, end func(), cancel context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(r.Context())
	v := &vigil{ReadCloser: r.Body, cancel: cancel}
	watched = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		watched.Body = v
	}
	left := storing
	v.timer = time.AfterFunc(silence, func() {
		if left--; left > 0 && v.taken.Load() && isReady() {
			v.timer.Reset(silence)
			return
		}
		cancel(errSilent)
	})
	return watched, func() { v.timer.Stop() }, cancel
}

// Read implements io.Reader.
func (v *vigil) Read(p []byte) (int, error) {
	v.timer.Stop()
	n, err := v.ReadCloser.Read(p)
	v.taken.Store(err == io.EOF)
	v.timer.Reset(silence)
	return n, err
}
