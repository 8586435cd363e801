package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// TestASlowBodyHoldsNoPlace opens as many connections as a broker may, which send half of a body each. Meanwhile all places
// are free for others.
// Promises: body-places
func TestASlowBodyHoldsNoPlace(t *testing.T) {
	a, engine := open(t, http.HandlerFunc(ok), func(c *Config) { c.Settings.MaxConcurrent, c.Timeout = 40, 3*time.Second })
	server := httptest.NewServer(engine)
	defer server.Close()
	most := a.places.assets.Limit() / brokerPart
	var all sync.WaitGroup
	defer all.Wait()
	for i := range most {
		all.Go(func() { _, _, _ = sendHalf(server.Listener.Addr().String(), i, 100) }) // the answer says nothing here
	}
	bodies, taken := 0, int64(0)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		bodies, taken = a.room.shares[0].requests.Held(), a.places.assets.Current()
		if bodies == most && taken == 0 {
			return
		}
	}
	t.Errorf("got %d bodies under way that hold %d places, want %d that hold none", bodies, taken, most)
}

// TestBodiesThatComeSlowly opens 1,000 connections that each send only half of a body. Each must be answered
// when its time is over, or immediately if there is no room. Afterwards nothing may remain of them.
func TestBodiesThatComeSlowly(t *testing.T) {
	const clients = 1000
	const length = 100                               // bytes of each body
	budget := memory.NewBudget(clients / 4 * length) // enough for a quarter of the bodies
	a, engine := open(t, http.HandlerFunc(ok), func(c *Config) {
		c.Timeout, c.Bodies = 500*time.Millisecond, budget
		c.Settings.MaxConcurrent = 2 * clients
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() {
		served <- httpserver.Serve(ctx, listener, engine, slog.New(slog.DiscardHandler), httpserver.ServeOptions{})
	}()
	defer func() {
		stop()
		expect.Try(t, <-served)
	}()
	late, refused, other := 0, 0, map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			status, answer, err := sendHalf(listener.Addr().String(), i, length)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && status == 400 && strings.Contains(answer, "did not arrive in time"):
				late++
			case err == nil && (status == 429 || status == 503):
				refused++
			default:
				other[fmt.Sprintf("%d %s, %v", status, answer, err != nil)]++
			}
		})
	}
	all.Wait()
	if late == 0 || len(other) > 0 {
		t.Errorf("got %d answers to late bodies, %d for want of room, and the others %v; want some late ones and no other",
			late, refused, other)
	}
	if free := budget.Hold(budget.Size()); !free {
		t.Error("got memory that is still held after the last answer, want none")
	} else {
		budget.Release(budget.Size())
	}
	for _, key := range []string{"new", "newer"} { // together, two keys use the whole part of their broker
		release, err := a.room.hold(identity.Identity{Broker: "b", KeyID: key}, budget.Size()/keyPart)
		expect.FatalIf(t, err != nil, "the part of key %s: got %v, want room", key, err)
		defer release()
	}
}

// TestABodyIsReadUntilTheTimeOfItsRequest sends a body that never comes. When the gateway reads it, the connection must
// have a deadline that is not later than the end of the request's time.
func TestABodyIsReadUntilTheTimeOfItsRequest(t *testing.T) {
	_, engine := open(t, http.HandlerFunc(ok), nil)
	latest := time.Now().Add(time.Minute)
	w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("POST", "/api/2.5/assets", waiting(func() error {
		if w.read.IsZero() || w.read.After(latest) {
			return fmt.Errorf("the deadline is %v", w.read)
		}
		return os.ErrDeadlineExceeded
	}))
	r.ContentLength = 10
	r.Header.Set("Authorization", "Bearer key")
	r.Header.Set("Content-Type", "application/json")
	engine.ServeHTTP(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "did not arrive in time") {
		t.Errorf("got %d %s, want 400: the body did not arrive in time", w.Code, w.Body)
	}
}

// deadlined is a connection that knows until when it may be read and written.
type deadlined struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlined) SetWriteDeadline(at time.Time) error {
	d.write = at
	return nil
}

func (d *deadlined) SetReadDeadline(at time.Time) error {
	d.read = at
	return nil
}

// waiting is a body without bytes. Reading it returns the error of the function.
type waiting func() error

func (w waiting) Read([]byte) (int, error) { return 0, w() }

// sendHalf begins a request with a separate key for each client, and sends half of the body.
func sendHalf(address string, client, length int) (status int, answer string, err error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return 0, "", err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, "", err
	}
	_, err = fmt.Fprintf(connection, "POST /api/2.5/assets HTTP/1.1\r\nHost: registry\r\n"+
		"X-Registry-Client: 10.1.%d.%d\r\nAuthorization: Bearer key-%d\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		client/250, client%250, client, length, strings.Repeat(" ", length/2))
	if err != nil {
		return 0, "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return 0, "", errors.Join(err, errors.New("no answer"))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}
