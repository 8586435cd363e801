package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// service is a service that takes the body of a request, and then does nothing until the request ends, or until the
// time in the field `answers`. If the field `stuck` is true, it takes nothing either.
type service struct {
	stuck, ready bool
	answers      time.Duration // 0: never
	body         io.ReadCloser // body of the answer
}

func (s service) Ready() (ready, all int) {
	if s.ready {
		return 1, 1
	}
	return 0, 1
}

func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	for !s.stuck && r.Body != nil {
		if _, err := r.Body.Read(make([]byte, 8)); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	var answered <-chan time.Time
	if s.answers > 0 {
		answered = time.After(s.answers)
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-answered:
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: s.body, ContentLength: 4}, nil
	}
}

// pieces is the body of a client that sends one byte in each interval.
type pieces struct {
	every time.Duration
	left  int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(p.every)
	p.left--
	return copy(b, "x"), nil
}

func (p *pieces) Close() error { return nil }

// halting is the body of an answer that stops after its first bytes.
type halting struct {
	io.Reader
	until time.Time // the deadline of reads
}

func (h *halting) Outlast(end time.Time) { h.until = end }

func (h *halting) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	time.Sleep(time.Until(h.until))
	return 0, os.ErrDeadlineExceeded
}

func (h *halting) Close() error { return nil }

// TestASilentServiceEndsTheRequest forwards requests without a deadline to services that take or give nothing. The
// clock is simulated.
// Promises: silence
func TestASilentServiceEndsTheRequest(t *testing.T) {
	whole := func() io.ReadCloser { return io.NopCloser(strings.NewReader("done")) }
	for _, c := range []struct {
		name    string
		service service
		body    io.ReadCloser
		took    time.Duration
		want    error // nil: an answer
	}{
		{"a read that gets no answer", service{ready: true}, http.NoBody, silence, errSilent},
		{"a read that gets its answer late", service{answers: silence - 1, body: whole()}, http.NoBody, silence - 1, nil},
		{"a body that is not taken", service{stuck: true, ready: true}, &pieces{left: 3}, silence, errSilent},
		{"a body that its client sends slowly", service{answers: 1, body: whole()}, &pieces{time.Minute, 5},
			5*time.Minute + 1, nil},
		{"a body whose service is not ready", service{}, &pieces{left: 3}, silence, errSilent},
		{"a body that is being stored", service{answers: 3 * silence, ready: true, body: whole()}, &pieces{left: 3},
			3 * silence, nil},
		{"a body that is never stored", service{ready: true}, &pieces{left: 3}, storing * silence, errSilent},
		{"an answer that stops", service{answers: 1, body: &halting{Reader: strings.NewReader("do")}}, http.NoBody,
			silence + 1, ErrCut},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
			r.Body = c.body
			begun, w := time.Now(), httptest.NewRecorder()
			err := Remote(c.service, newSigner(t)).Patient().Forward(w, r, Request{Path: "/"})
			if took := time.Since(begun); took != c.took || !errors.Is(err, c.want) {
				t.Errorf("%s: got %v after %v, want %v after %v", c.name, err, took, c.want, c.took)
			}
			if c.want == errSilent && fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%s: got a fault of kind %d, want Unavailable", c.name, fault.KindOf(err))
			}
			if c.want == nil && w.Body.String() != "done" {
				t.Errorf("%s: got the answer %q, want the whole one", c.name, w.Body)
			}
		})
	}
}

// TestARequestWithADeadlineHasNoOther forwards a request whose deadline an operator has set to more than the longest
// silence.
func TestARequestWithADeadlineHasNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		slow := service{answers: 3 * silence, body: io.NopCloser(strings.NewReader("done"))}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
		err := Remote(slow, newSigner(t)).Forward(w, r, Request{Path: "/"})
		expect.ErrorIf(t, err != nil || w.Body.String() != "done", "got %q, %v; want the whole answer", w.Body, err)
	})
}
