package clients

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// retryAfter is the value of Retry-After in injected refusals, in seconds.
const retryAfter = 1

// fault is the failure of one request.
type fault struct {
	status int  // status of the answer; 0: the connection breaks during the answer
	after  bool // the request fails only when the registry has carried it out
}

// sent is a request that the proxy got. Preflight requests are left out.
type sent struct {
	method, path string
	idempotency  string // the Idempotency-Key
	at           time.Time
	refused      int    // status of the injected refusal; 0 if none was injected
	stream       bool   // whether the request asks for an event stream
	from         string // the offset after which the stream begins; "" if the request has none
}

// proxy forwards requests to a registry. If a fault was injected, the proxy makes the next request fail. While the
// registry is down, the proxy closes the connection of each request.
type proxy struct {
	registry *httputil.ReverseProxy

	mu     sync.Mutex
	faults []fault // one for each of the next requests
	sent   []sent
	cookie string        // replaces the next SERVER_ID that the registry sets; if "", nothing is replaced
	missed chan struct{} // closed when a request for a page could not be forwarded; nil while nobody waits for that
}

// newProxy returns a proxy in front of the registry at addr. It sends GET requests to the address in the parameter
// `reader` instead.
func newProxy(addr, reader string) *proxy {
	p := &proxy{}
	p.registry = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			target := &url.URL{Scheme: "http", Host: addr}
			if r.In.Method == http.MethodGet {
				target.Host = reader
			}
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: p.replaceCookie,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, _ error) {
			p.miss(r)
			panic(http.ErrAbortHandler)
		},
	}
	return p
}

// inject adds a fault, which makes one request fail.
func (p *proxy) inject(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
}

// giveCookie replaces the value of the next SERVER_ID that the registry sets.
func (p *proxy) giveCookie(value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cookie = value
}

func (p *proxy) replaceCookie(resp *http.Response) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cookie != "" && resp.Header.Get("Set-Cookie") != "" {
		resp.Header.Set("Set-Cookie", (&http.Cookie{Name: "SERVER_ID", Value: p.cookie}).String())
		p.cookie = ""
	}
	return nil
}

// nextMissedPage returns a channel that is closed when a request for a page fails because the registry is down.
func (p *proxy) nextMissedPage() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed = make(chan struct{})
	return p.missed
}

// miss records that a request could not be forwarded.
func (p *proxy) miss(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.missed != nil && r.Method == http.MethodGet && r.URL.Path == "/api/2.5/assets" {
		close(p.missed)
		p.missed = nil
	}
}

// record records a request. It returns the fault for this request, or nil.
func (p *proxy) record(r *http.Request) *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := sent{method: r.Method, path: r.URL.Path, idempotency: r.Header.Get("Idempotency-Key"), at: time.Now(),
		stream: r.Header.Get("Accept") == "text/event-stream",
		from:   cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("offset"))}
	var f *fault
	if len(p.faults) > 0 {
		f, p.faults = &p.faults[0], p.faults[1:]
		s.refused = f.status
	}
	p.sent = append(p.sent, s)
	return f
}

// requests returns all recorded requests.
func (p *proxy) requests() []sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// ServeHTTP forwards a request or makes it fail.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		p.registry.ServeHTTP(w, r)
		return
	}
	f := p.record(r)
	if f == nil {
		p.registry.ServeHTTP(w, r)
		return
	}
	if f.after {
		p.registry.ServeHTTP(httptest.NewRecorder(), r)
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if f.status == 0 {
		breakOff(w)
	}
	w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	w.WriteHeader(f.status)
	fmt.Fprint(w, `{"status":"error","errors":[{"location":"url","name":"test","description":"injected"}]}`)
}

// breakOff sends the beginning of an answer and closes the connection. If it sent nothing, a browser would repeat
// the request by itself.
func breakOff(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000")
	w.WriteHeader(http.StatusOK)
	fmt.Fprint(w, `{"data":`)
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(err)
	}
	panic(http.ErrAbortHandler)
}
