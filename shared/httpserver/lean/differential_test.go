package lean

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tape is a connection. Each Read returns one of the pieces, and then the connection ends. It keeps all bytes that are
// written to it.
type tape struct {
	mu     sync.Mutex
	pieces [][]byte
	wrote  bytes.Buffer
	closed chan struct{}
	once   sync.Once
	name   string
}

func (t *tape) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, t.pieces[0])
	if t.pieces[0] = t.pieces[0][n:]; len(t.pieces[0]) == 0 {
		t.pieces = t.pieces[1:]
	}
	return n, nil
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrote.Write(p)
}

func (t *tape) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

// CloseWrite closes the tape. net/http calls CloseWrite after a refusal, and calls Close half a second later. With this
// CloseWrite, the test need not wait for Close.
func (t *tape) CloseWrite() error { return t.Close() }

func (t *tape) LocalAddr() net.Addr              { return name("server") }
func (t *tape) RemoteAddr() net.Addr             { return name(t.name) }
func (t *tape) SetDeadline(time.Time) error      { return nil }
func (t *tape) SetReadDeadline(time.Time) error  { return nil }
func (t *tape) SetWriteDeadline(time.Time) error { return nil }

type name string

func (n name) Network() string { return "tape" }
func (n name) String() string  { return string(n) }

// tapes is a listener for connections that a test makes.
type tapes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newTapes() *tapes { return &tapes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *tapes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *tapes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *tapes) Addr() net.Addr { return name("server") }

// resumed is a connection whose first bytes were read already.
type resumed struct {
	*tape
	rest io.Reader
}

func (r resumed) Read(p []byte) (int, error) { return r.rest.Read(p) }

func handOver(conn net.Conn, rest []byte) net.Conn {
	return resumed{conn.(*tape), io.MultiReader(bytes.NewReader(rest), conn)}
}

func isMine(net.Conn) bool { return true }

// pair has two servers with the same handler: net/http alone, and this package in front of net/http.
type pair struct {
	std, lean *tapes
	mu        sync.Mutex
	seen      map[string][]string // what the handler saw, by the name of the connection
	number    int
}

func newPair(tb testing.TB, handler http.HandlerFunc) *pair {
	p := &pair{std: newTapes(), lean: newTapes(), seen: map[string][]string{}}
	noted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen[r.RemoteAddr] = append(p.seen[r.RemoteAddr], describe(r))
		p.mu.Unlock()
		handler(w, r)
	})
	simple := Listen(p.lean, Options{
		Handler: noted, HandOver: handOver, IsMine: isMine, Log: slog.New(slog.DiscardHandler),
		First: time.Minute, Idle: time.Minute, Write: time.Minute,
	})
	for _, l := range []net.Listener{p.std, simple} {
		server := &http.Server{Handler: noted, MaxHeaderBytes: 32 << 10, ErrorLog: log.New(io.Discard, "", 0)}
		go server.Serve(l)
		tb.Cleanup(func() { server.Close() })
	}
	return p
}

// describe returns a text with all parts of a request that a handler can see.
func describe(r *http.Request) string {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	u := *r.URL
	u.User = nil // a pointer is different in each run; "url %s" below has the text of User
	return fmt.Sprintf("%s %q %q %v %q host %q length %d encoding %v close %t body %q %v trailer %v url %s %#v tls %v",
		r.Method, r.RequestURI, r.Proto, []int{r.ProtoMajor, r.ProtoMinor}, r.Header, r.Host, r.ContentLength,
		r.TransferEncoding, r.Close, body, err, r.Trailer, r.URL, u, r.TLS)
}

// outcome is what the handler saw, and what the client got, on one connection.
type outcome struct {
	Seen    []string
	Answers []answer
	Rest    string // without the value of Date: bytes after the answers of the handler: a refusal of net/http
}

type answer struct {
	Status string
	Header http.Header // without the fields that may differ: Date and the way of framing
	Body   string
	Length string // the Content-Length in an answer to HEAD
	Error  string
	Close  bool
}

// run sends pieces on a new connection of l and waits for its end.
func (p *pair) run(tb testing.TB, l *tapes, pieces [][]byte) outcome {
	p.mu.Lock()
	p.number++
	conn := &tape{pieces: bytesOf(pieces), closed: make(chan struct{}), name: fmt.Sprint("client ", p.number)}
	p.mu.Unlock()
	l.conns <- conn
	select {
	case <-conn.closed:
	case <-time.After(20 * time.Second):
		tb.Fatalf("got an open connection after 20 s, want the end, for %q", pieces)
	}
	p.mu.Lock()
	seen := p.seen[conn.name]
	delete(p.seen, conn.name)
	p.mu.Unlock()
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return outcome{Seen: seen}.read(conn.wrote.Bytes())
}

func bytesOf(pieces [][]byte) (copies [][]byte) {
	for _, p := range pieces {
		copies = append(copies, bytes.Clone(p))
	}
	return copies
}

func (o outcome) read(wrote []byte) outcome {
	r := bufio.NewReaderSize(bytes.NewReader(wrote), len(wrote)+16)
	for _, seen := range o.Seen {
		method, _, _ := strings.Cut(seen, " ")
		for {
			if start, _ := r.Peek(12); bytes.HasPrefix(start, []byte("HTTP/1.1 100")) {
				_, _ = r.ReadString('\n')
				_, _ = textproto.NewReader(r).ReadMIMEHeader()
				continue
			}
			break
		}
		if _, err := r.Peek(1); err != nil {
			o.Answers = append(o.Answers, answer{Error: "no answer"})
			break
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			o.Answers = append(o.Answers, answer{Error: "no answer: " + err.Error()})
			break
		}
		body, err := io.ReadAll(resp.Body)
		a := answer{Status: resp.Status, Header: resp.Header, Body: string(body), Close: resp.Close}
		if err != nil {
			a.Error = err.Error()
		}
		if method == http.MethodHead {
			a.Length = resp.Header.Get("Content-Length")
		}
		for trailer, values := range resp.Trailer {
			a.Header["Trailer of the answer: "+trailer] = values
		}
		delete(a.Header, "Date")
		delete(a.Header, "Content-Length")
		o.Answers = append(o.Answers, a)
	}
	rest, _ := io.ReadAll(r)
	o.Rest = dateField.ReplaceAllString(string(rest), "Date:")
	return o
}

var dateField = regexp.MustCompile(`Date: [^\r]*`)

// compare sends the same bytes to both servers and compares the outcomes.
func (p *pair) compare(tb testing.TB, pieces [][]byte) {
	tb.Helper()
	want := p.run(tb, p.std, pieces)
	got := p.run(tb, p.lean, pieces)
	for i, a := range want.Answers { // net/http sends Content-Length for small answers only
		if a.Length == "" && i < len(got.Answers) {
			got.Answers[i].Length = ""
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("for %q: net/http (-), this package (+):\n%s", pieces, diff)
	}
}

// split cuts data into pieces of the given lengths; the last piece is the rest.
func split(data, lengths []byte) (pieces [][]byte) {
	for _, n := range lengths {
		if n := int(n); n > 0 && n < len(data) {
			pieces, data = append(pieces, data[:n]), data[n:]
		}
	}
	if len(data) > 0 {
		pieces = append(pieces, data)
	}
	return pieces
}

// heads are requests that this package answers, and many that only look like them.
var heads = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a/b?c=d&e HTTP/1.1\r\nHost: a.example:80\r\nUser-Agent: x y\r\naccept: */*\r\nACCEPT: b\r\n\r\n",
	"HEAD /x HTTP/1.1\r\nHost: [::1]:8080\r\nIf-None-Match: \"a\"\r\nEmpty:\r\nTabbed:\t a \t\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /3 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive, close\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n Content-Length: 3\r\n\r\nabc",
	"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\n\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: a\nContent-Length: 3\r\n\r\nabc",
	"GET / HTTP/1.1\r\nHost: a\r\nX: a\rContent-Length: 3\r\n\r\nabc",
	"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: \xd0\xb0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost:\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	"GET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.0\r\n\r\n",
	"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
	"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
	"get / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET http://b/c HTTP/1.1\r\nHost: a\r\n\r\n",
	"T p://d@c HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /%2f%41?%zz#f HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /\xd0\xb0 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTrailer: X\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nCookie: a=b; c=d\r\nX-Request-ID: 5\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 5000) + "\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /" + strings.Repeat("x", maxHead-28) + " HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET",
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n",
	"GET",
	"\x16\x03\x01\x00",
	"",
}

// echo answers with the path. The answers differ in how they are framed.
func echo(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/2"):
		w.Header().Set("Content-Length", "2")
	case strings.HasPrefix(r.URL.Path, "/3"):
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, "ok")
}

func TestSameAsNetHTTP(t *testing.T) {
	p := newPair(t, echo)
	for _, head := range heads {
		p.compare(t, split([]byte(head), nil))
		for n := 1; n < min(len(head), 255); n++ {
			p.compare(t, split([]byte(head), []byte{byte(n)}))
		}
	}
}

// FuzzSameAsNetHTTP compares the requests that handlers see and the answers that clients get (see Safety in the package
// comment).
func FuzzSameAsNetHTTP(f *testing.F) {
	for _, head := range heads {
		f.Add([]byte(head), []byte{})
		f.Add([]byte(head), []byte{20, 30})
	}
	p := newPair(f, echo)
	f.Fuzz(func(t *testing.T, data, lengths []byte) {
		if len(data) > 20_000 {
			return
		}
		p.compare(t, split(data, lengths))
	})
}
