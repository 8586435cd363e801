package httpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// sending starts a server whose /large sends size bytes at a pace. It returns the
// server's address, and a channel with the error of each answer.
func sending(t *testing.T, pace Pace, size int, timeout time.Duration, crowded bool) (addr string, ended <-chan error) {
	t.Helper()
	errs := make(chan error, 10)
	engine := NewEngine(Options{
		Log: slog.New(slog.DiscardHandler), Timeout: timeout, Ready: func(context.Context) error { return nil },
	})
	engine.GET("/large", Handle(func(c *gin.Context) error {
		err := NewSender(c.Writer, pace).SendAll(c.Request.Context(), make([]byte, size), func() bool { return crowded })
		errs <- err
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		return nil
	}))
	addr, _ = serveFor(t, engine, ServeOptions{}, defaultTimeouts)
	return addr, errs
}

// askLarge requests /large and reads nothing.
func askLarge(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn := connect(t, addr)
	fmt.Fprintf(conn, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
	return conn
}

const tooMuch = 64 << 20 // bytes; more than the buffers of a socket hold

// Promises: pace
func TestAClientThatTakesNothingIsCutOff(t *testing.T) {
	expect.Equal(t, DefaultPace, (Pace{Bytes: 64 << 10, Within: 10 * time.Second, All: time.Minute}),
		"the pace, by default")
	pace := Pace{Bytes: 64 << 10, Within: 50 * time.Millisecond, All: time.Hour}
	addr, ended := sending(t, pace, tooMuch, time.Hour, false)
	conn := askLarge(t, addr)
	expect.Err(t, <-ended, os.ErrDeadlineExceeded, "")
	expect.ErrOf(t, syscall.ECONNRESET, "the client")(io.Copy(io.Discard, conn))
}

func TestAClientThatTakesItAllGetsItAll(t *testing.T) {
	pace := Pace{Bytes: 64 << 10, Within: time.Minute, All: time.Minute}
	addr, ended := sending(t, pace, tooMuch, time.Nanosecond, false)
	resp, err := http.Get("http://" + addr + "/large")
	expect.OK(t, err)
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != tooMuch || err != nil {
		t.Errorf("got %d bytes, %v; want %d: the request's timeout does not limit the sending", n, err, tooMuch)
	}
	expect.Try(t, <-ended)
}

// Promises: pace
func TestTheWholeAnswerHasATime(t *testing.T) {
	pace := Pace{Bytes: 64 << 10, Within: time.Hour, All: 50 * time.Millisecond}
	addr, ended := sending(t, pace, tooMuch, time.Hour, false)
	askLarge(t, addr)
	expect.Err(t, <-ended, os.ErrDeadlineExceeded, "")
}

func TestALateAnswerGivesWayToOthers(t *testing.T) {
	addr, ended := sending(t, Pace{Bytes: 64 << 10, Within: time.Hour, All: time.Hour}, tooMuch, time.Nanosecond, true)
	askLarge(t, addr)
	expect.Err(t, <-ended, errCrowdedOut, "")
}

// TestASlowBodyHearsWhy uses a client that sends too slowly. The client must get the refusal of the
// handler, although net/http cancels the context of the request.
func TestASlowBodyHearsWhy(t *testing.T) {
	engine := NewEngine(Options{Log: slog.New(slog.DiscardHandler), Ready: func(context.Context) error { return nil },
		TimeoutOf: func(*gin.Context) time.Duration { return Unlimited }})
	engine.POST("/slow", Handle(func(c *gin.Context) error {
		pace := Pace{Bytes: 10, Within: 50 * time.Millisecond, All: time.Minute}
		_, err := io.ReadAll(NewReceiver(c.Writer, c.Request.Body, pace))
		<-c.Request.Context().Done()
		return fmt.Errorf("%w: %w", fault.New(fault.Invalid, fault.Body, "file", "too slow"), err)
	}))
	addr, _ := serveFor(t, engine, ServeOptions{}, defaultTimeouts)
	conn := connect(t, addr)
	fmt.Fprint(conn, "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	expect.OK(t, err)
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); resp.StatusCode != 400 || !strings.Contains(string(text), "too slow") {
		t.Errorf("got %d %q, %v, want the refusal of the handler", resp.StatusCode, text, err)
	}
}
