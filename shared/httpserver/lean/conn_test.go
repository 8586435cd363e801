package lean

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// start serves on a TCP port, with a Listener of this package in front of net/http, until the test ends. It
// returns the Listener, and a counter of the requests that net/http gets.
func start(t *testing.T, handler http.HandlerFunc, o Options) (l *Listener, handed *int) {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	var mu sync.Mutex
	handed = new(int)
	o.Handler, o.IsMine, o.Log = handler, isMine, slog.New(slog.DiscardHandler)
	if o.HandOver = func(conn net.Conn, rest []byte) net.Conn {
		mu.Lock()
		defer mu.Unlock()
		*handed++
		return tcpResumed{conn, io.MultiReader(bytes.NewReader(rest), conn)}
	}; o.First == 0 {
		o.First, o.Idle, o.Write = time.Minute, time.Minute, time.Minute
	}
	l = Listen(plain, o)
	server := &http.Server{Handler: handler}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l, handed
}

type tcpResumed struct {
	net.Conn
	rest io.Reader
}

func (r tcpResumed) Read(p []byte) (int, error) { return r.rest.Read(p) }

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	expect.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	expect.OK(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

func ask(t *testing.T, w io.Writer, path string) {
	t.Helper()
	expect.Get(fmt.Fprintf(w, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path))(t)
}

func answerOf(t *testing.T, r *bufio.Reader) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	expect.OK(t, err)
	body, err := io.ReadAll(resp.Body)
	expect.OK(t, err)
	return resp, string(body)
}

func path(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }

// TestNothingThatArrivesIsMissed sends requests in pieces of any size at any time, some of them while a handler runs.
// Each request must be answered. When a request has arrived only in part, net/http gets the connection.
func TestNothingThatArrivesIsMissed(t *testing.T) {
	l, handed := start(t, path, Options{})
	var clients sync.WaitGroup
	for seed := range uint64(8) {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			conn := dial(t, l)
			r := bufio.NewReader(conn)
			for round := range 300 {
				var all bytes.Buffer
				n := 1 + random.IntN(4)
				for i := range n {
					fill := ""
					if random.IntN(3) == 0 {
						fill = strings.Repeat("x", random.IntN(maxHead/2))
					}
					fmt.Fprintf(&all, "GET /%d/%d HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", round, i, fill)
				}
				go func() { // sends while the test reads the answers
					for all.Len() > 0 {
						size := all.Len()
						if seed%4 == 0 {
							size = 1 + random.IntN(size)
						}
						if _, err := conn.Write(all.Next(size)); err != nil {
							t.Error(err)
							return
						}
					}
				}()
				for i := range n {
					if _, got := answerOf(t, r); got != fmt.Sprintf("/%d/%d", round, i) {
						t.Errorf("got %q, want the answer %d of round %d", got, i, round)
					}
				}
			}
		})
	}
	clients.Wait()
	if *handed == 0 || *handed > 8 {
		t.Errorf("net/http got %d of 8 connections, want some", *handed)
	}
}

// TestAHeadThatFillsTheBuffer sends requests of all sizes around the size of the buffer. A second request follows each
// of them immediately. Both must be answered.
func TestAHeadThatFillsTheBuffer(t *testing.T) {
	l, _ := start(t, path, Options{})
	const frame = len("GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n")
	for size := maxHead - 40; size < maxHead+3; size++ {
		conn := dial(t, l)
		first := "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", size-frame) + "\r\n\r\n"
		expect.Get(io.WriteString(conn, first+"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"))(t)
		r := bufio.NewReader(conn)
		for _, want := range []string{"/", "/2"} {
			if _, got := answerOf(t, r); got != want {
				t.Errorf("size %d: got %q, want %q", size, got, want)
			}
		}
		conn.Close()
	}
}

func TestAClientThatLeavesEndsTheContext(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	l, _ := start(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		select {
		case <-r.Context().Done():
			ended <- r.Context().Err()
		case <-time.After(20 * time.Second):
			ended <- errors.New("the context goes on")
		}
	}, Options{})
	conn := dial(t, l)
	ask(t, conn, "/")
	<-begun
	conn.Close()
	expect.Err(t, <-ended, context.Canceled, "")
}

// TestAHandlerThatMayWaitSeesAtOnceThatItsClientHasLeft has a handler that removes the read deadline
// after its client has left. The context of the request must then end.
func TestAHandlerThatMayWaitSeesAtOnceThatItsClientHasLeft(t *testing.T) {
	begun, left, ended := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	l, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		for range 2 {
			begun <- struct{}{}
			<-left
			expect.Try(t, control.SetReadDeadline(time.Time{}))
			ended <- r.Context().Err()
		}
	}, Options{})
	conn := dial(t, l)
	ask(t, conn, "/")
	<-begun
	left <- struct{}{} // lets the handler go on, although the client has not left yet
	if err := <-ended; err != nil {
		t.Errorf("got %v while the client is there, want none", err)
	}
	<-begun
	conn.Close()
	left <- struct{}{}
	expect.Err(t, <-ended, context.Canceled, "after the client has left")
}

func TestTheContextEndsWithTheRequest(t *testing.T) {
	contexts := make(chan context.Context, 1)
	l, _ := start(t, func(_ http.ResponseWriter, r *http.Request) { contexts <- r.Context() }, Options{})
	conn := dial(t, l)
	ask(t, conn, "/")
	answerOf(t, bufio.NewReader(conn))
	<-(<-contexts).Done()
}

func TestIdleConnectionsEnd(t *testing.T) {
	l, _ := start(t, path, Options{First: 50 * time.Millisecond, Idle: 50 * time.Millisecond, Write: time.Minute})
	silent, idle := dial(t, l), dial(t, l)
	ask(t, idle, "/")
	for _, conn := range []net.Conn{silent, idle} {
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("got %v, want the end of the connection", err)
		}
	}
}

// TestAnUnreadAnswerEnds uses a client that reads nothing. The handler's write must fail.
func TestAnUnreadAnswerEnds(t *testing.T) {
	failed := make(chan error, 1)
	l, _ := start(t, func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, 32<<20))
		failed <- err
	}, Options{First: time.Minute, Idle: time.Minute, Write: 100 * time.Millisecond})
	ask(t, dial(t, l), "/")
	expect.Err(t, <-failed, os.ErrDeadlineExceeded, "")
}

// TestShutdown shuts the server down. At this time one connection is idle, the handler of another connection runs,
// and two connections are new. The first request on a new connection must still get its answer, from this package
// or from net/http.
func TestShutdown(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	l, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-goOn
		}
		path(w, r)
	}, Options{})
	idle, busy, fresh, posts := dial(t, l), dial(t, l), dial(t, l), dial(t, l)
	ask(t, idle, "/")
	answerOf(t, bufio.NewReader(idle))
	ask(t, busy, "/slow")
	<-begun
	for held := 0; held < 4; { // until all four are accepted
		l.mu.Lock()
		held = len(l.conns)
		l.mu.Unlock()
	}
	shut := make(chan error, 1)
	go func() { shut <- l.Shutdown(t.Context()) }()
	if _, err := io.ReadAll(idle); err != nil {
		t.Errorf("idle: got %v, want the end", err)
	}
	ask(t, fresh, "/fresh")
	expect.Get(io.WriteString(posts, "POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na"))(t)
	close(goOn)
	for conn, want := range map[net.Conn]string{busy: "/slow", fresh: "/fresh", posts: "/post"} {
		if _, got := answerOf(t, bufio.NewReader(conn)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect.Err(t, <-shut, nil, "shutdown")
	expect.FailsOf(t, "after the shutdown")(net.Dial("tcp", l.Addr().String()))
}

func TestShutdownCutsOffAtItsEnd(t *testing.T) {
	begun := make(chan struct{})
	l, _ := start(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}, Options{})
	ask(t, dial(t, l), "/")
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	expect.Err(t, l.Shutdown(ctx), errCutOff, "")
	for held := 1; held > 0; time.Sleep(time.Millisecond) { // until the handler has ended
		l.mu.Lock()
		held = len(l.conns)
		l.mu.Unlock()
	}
}

// TestHijack has a handler that takes over its connection. After the handler has ended, the connection must still be
// usable, with the bytes that came after the request. The handler must also be able to close the connection.
func TestHijack(t *testing.T) {
	type taken struct {
		conn net.Conn
		rest *bufio.ReadWriter
	}
	for _, c := range []struct {
		name   string
		closes bool // the handler itself calls Close
	}{{"used after the handler", false}, {"closed within the handler", true}} {
		t.Run(c.name, func(t *testing.T) {
			got := make(chan taken, 1)
			l, _ := start(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, rest, err := http.NewResponseController(w).Hijack()
				expect.Try(t, err)
				expect.ErrOf(t, http.ErrHijacked, "write")(w.Write([]byte("x")))
				if c.closes {
					conn.Close()
					_, err := conn.Read(make([]byte, 1))
					expect.Err(t, err, net.ErrClosed, "read")
				}
				got <- taken{conn, rest}
			}, Options{})
			conn := dial(t, l)
			expect.Get(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\nmore"))(t)
			h := <-got
			if c.closes {
				if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
					t.Errorf("got %v, want the end", err)
				}
				return
			}
			expect.Equal(t, h.rest.Reader.Buffered(), len("more"), "bytes buffered")
			expect.Get(io.WriteString(conn, "!"))(t)
			var read [5]byte
			if _, err := io.ReadFull(h.rest, read[:]); err != nil || string(read[:]) != "more!" {
				t.Errorf("got %q, %v; want %q", read, err, "more!")
			}
			expect.Get(io.WriteString(h.conn, "bye"))(t)
			h.conn.Close()
			if text, err := io.ReadAll(conn); err != nil || string(text) != "bye" {
				t.Errorf("got %q, %v; want %q", text, err, "bye")
			}
		})
	}
}

func TestAPanicEndsTheConnectionOnly(t *testing.T) {
	l, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			_, _ = io.WriteString(w, "a part")
			panic("an error")
		}
		path(w, r)
	}, Options{})
	conn := dial(t, l)
	ask(t, conn, "/panic")
	if text, err := io.ReadAll(conn); err != nil || len(text) > 0 {
		t.Errorf("got %q, %v; want nothing", text, err)
	}
	conn = dial(t, l)
	ask(t, conn, "/next")
	if _, got := answerOf(t, bufio.NewReader(conn)); got != "/next" {
		t.Errorf("got %q, want %q", got, "/next")
	}
}

func TestLargeAndStreamedAnswers(t *testing.T) {
	want := strings.Repeat("0123456789", 100_000)
	l, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", fmt.Sprint(len(want)))
			_, _ = io.WriteString(w, want)
		case "/chunks":
			_, _ = io.WriteString(w, want)
		case "/pieces":
			for rest := want; rest != ""; {
				n := min(len(rest), 777)
				_, _ = io.WriteString(w, rest[:n])
				rest = rest[n:]
				if len(rest)%5 == 0 {
					w.(http.Flusher).Flush()
				}
			}
		}
	}, Options{})
	conn := dial(t, l)
	r := bufio.NewReader(conn)
	for _, p := range []string{"/length", "/chunks", "/pieces", "/length"} {
		ask(t, conn, p)
		if _, got := answerOf(t, r); got != want {
			t.Errorf("%s: got %d bytes, want %d", p, len(got), len(want))
		}
	}
}

func TestNothingOfAnAnswerIsInTheNext(t *testing.T) {
	l, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			w.Header().Set("X-First", "1")
			_, _ = io.WriteString(w, "body")
		}
	}, Options{})
	conn := dial(t, l)
	r := bufio.NewReader(conn)
	for range 10 { // several times, because answers reuse memory
		for path, want := range map[string]string{"/first": "1 body", "/second": " "} {
			ask(t, conn, path)
			resp, body := answerOf(t, r)
			if got := resp.Header.Get("X-First") + " " + body; got != want {
				t.Fatalf("%s: got %q, want %q", path, got, want)
			}
		}
	}
}
