package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/testing/expect"
)

// shouting is a layer that changes the body.
type shouting struct{ http.ResponseWriter }

func (s shouting) Write(p []byte) (int, error) { return s.ResponseWriter.Write(bytes.ToUpper(p)) }

func (s shouting) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// lines is a channel that gets the lines of a log.
type lines chan []byte

func (l lines) Write(p []byte) (int, error) {
	l <- bytes.Clone(p)
	return len(p), nil
}

// sendingFile starts a server with two layers of gin, like a service that shares a process. For the path /SIZE, the
// server sends the file with a Content-Length of SIZE. If shout is true, a layer between the two layers changes the
// body. sendingFile returns the server's address, its log, and the errors of the answers.
func sendingFile(t *testing.T, pace Pace, path string, shout bool) (addr string, logged lines, ended <-chan error) {
	t.Helper()
	logged, errs := make(lines, 100), make(chan error, 10)
	o := Options{
		Log:     slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Timeout: time.Minute, Ready: func(context.Context) error { return nil },
	}
	inner, outer := NewEngine(Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Minute, Ready: o.Ready}), NewEngine(o)
	inner.GET("/:size", Handle(func(c *gin.Context) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		size, err := strconv.ParseInt(c.Param("size"), 10, 64)
		if err != nil {
			return err
		}
		c.Header("Content-Type", "text/plain")
		c.Header("Content-Length", c.Param("size"))
		c.Status(http.StatusOK)
		_, err = NewSender(c.Writer, pace).SendFrom(io.LimitReader(f, size))
		errs <- err
		return nil
	}))
	outer.GET("/:size", Handle(func(c *gin.Context) error {
		var w http.ResponseWriter = c.Writer
		if shout {
			w = shouting{w}
		}
		inner.ServeHTTP(w, c.Request)
		return nil
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, outer, slog.New(slog.DiscardHandler), ServeOptions{}) }()
	t.Cleanup(func() {
		stop()
		expect.Try(t, <-served)
	})
	return listener.Addr().String(), logged, errs
}

// lowercase makes a file of random lower-case letters, and returns its path and its text.
func lowercase(t *testing.T, size int) (path string, text []byte) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	text = make([]byte, size)
	for i := range text {
		text[i] = byte('a' + random.IntN(26))
	}
	path = filepath.Join(t.TempDir(), "file")
	expect.OK(t, os.WriteFile(path, text, 0o600))
	return path, text
}

func TestAFileIsSentWhole(t *testing.T) {
	path, text := lowercase(t, 3<<20+1)
	for _, shout := range []bool{false, true} {
		addr, logged, ended := sendingFile(t, Pace{Bytes: 64 << 10, Within: time.Minute, All: time.Minute}, path, shout)
		for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, len(text)} {
			resp, err := http.Get("http://" + addr + "/" + strconv.Itoa(size))
			expect.OK(t, err)
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			expect.Err(t, errors.Join(err, <-ended), nil, "%d bytes", size)
			want := text[:size]
			if shout {
				want = bytes.ToUpper(want)
			}
			if !bytes.Equal(got, want) || resp.ContentLength != int64(size) {
				t.Errorf("%d bytes, changed %t: got %d bytes of %d, want the file's bytes", size, shout, len(got), resp.ContentLength)
			}
			if got := loggedBytes(t, logged); got != size {
				t.Errorf("%d bytes: the log has %d", size, got)
			}
		}
	}
}

// loggedBytes returns how many bytes the next line of a log has.
func loggedBytes(t *testing.T, logged lines) int {
	t.Helper()
	select {
	case text := <-logged:
		line := struct{ Bytes int }{-1}
		expect.OK(t, json.Unmarshal(text, &line))
		return line.Bytes
	case <-time.After(10 * time.Second):
		t.Fatal("got no line of the log, want one for the request")
		return 0
	}
}

func TestAFileThatIsTooShortEndsTheConnection(t *testing.T) {
	path, text := lowercase(t, 100_000)
	addr, _, _ := sendingFile(t, DefaultPace, path, false)
	resp, err := http.Get("http://" + addr + "/" + strconv.Itoa(len(text)+1))
	expect.OK(t, err)
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Equal(got, text) {
		t.Errorf("got %d bytes and %v, want %d bytes and %v", len(got), err, len(text), io.ErrUnexpectedEOF)
	}
}

func TestAClientThatTakesNothingOfAFileIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	expect.OK(t, os.WriteFile(path, nil, 0o600))
	expect.OK(t, os.Truncate(path, tooMuch))
	addr, _, ended := sendingFile(t, Pace{Bytes: 64 << 10, Within: 50 * time.Millisecond, All: time.Hour}, path, false)
	conn, err := net.Dial("tcp", addr)
	expect.OK(t, err)
	defer conn.Close()
	expect.Get(io.WriteString(conn, "GET /"+strconv.Itoa(tooMuch)+" HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
	expect.Err(t, <-ended, os.ErrDeadlineExceeded, "")
}
