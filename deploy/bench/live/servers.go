package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
)

// assetBody is the body of a request that creates an asset of 3 KB.
//
//go:embed asset.json
var assetBody []byte

// registry is the registry in one process. Its assets are changed one after the other.
type registry struct {
	process *processes.Process
	dir     string
	addr    string
	assets  []owned
	changes int
}

// owned is an asset with its owner token.
type owned struct{ id, token string }

// assets is the number of assets that are changed in turn. There are many, because a follower gets only the newest
// state of an asset that changes twice before the follower reads it.
const assets = 200

func startRegistry(ctx context.Context, bin string) (server, error) {
	addr, err := porttest.FreeAddr()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "live")
	if err != nil {
		return nil, err
	}
	s := &registry{dir: dir, addr: addr}
	s.process, err = processes.Standalone(ctx, bin, addr, dir, &processes.Output{Also: io.Discard},
		"--client-streams", "100000", "--log-level", "error")
	if err != nil {
		return nil, err
	}
	for range assets {
		if err := s.add(ctx); err != nil {
			s.stop()
			return nil, err
		}
	}
	return s, nil
}

// add creates and publishes an asset.
func (s *registry) add(ctx context.Context) error {
	var created struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	if err := s.do(ctx, http.MethodPost, owned{}, assetBody, &created); err != nil {
		return err
	}
	a := owned{created.Data.ID, created.Access.Token}
	s.assets = append(s.assets, a)
	return s.do(ctx, http.MethodPatch, a, []byte(`{"data":{"status":"pending"}}`), nil)
}

// The method `do` sends a request that changes or creates an asset, and reads the answer.
func (s *registry) do(ctx context.Context, method string, a owned, body []byte, into any) error {
	address := "http://" + s.addr + "/api/2.5/assets"
	if a.id != "" {
		address += "/" + a.id
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.SetBasicAuth("broker", "")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Access-Token", a.token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s of an asset: status %d, %w", method, resp.StatusCode, err)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

func (s *registry) change(ctx context.Context) (string, error) {
	s.changes++
	var changed struct{ Data struct{ DateModified string } }
	body := fmt.Appendf(nil, `{"data":{"description":"change %d"}}`, s.changes)
	err := s.do(ctx, http.MethodPatch, s.assets[s.changes%assets], body, &changed)
	return changed.Data.DateModified, err
}

func (s *registry) path(fields string) string {
	return "/api/2.5/assets?opt_fields=" + url.QueryEscape(fields)
}

func (s *registry) pid() int        { return s.process.ID() }
func (s *registry) address() string { return s.addr }

func (s *registry) stop() {
	_ = s.process.Kill() // a kill is safe, because the data are removed
	_ = os.RemoveAll(s.dir)
}

// naive is a handler on gin that sends each event to each client through a channel.
type naive struct {
	cmd     *exec.Cmd
	addr    string
	changes int
}

// serveNaive runs the naive handler, and prints its address.
func serveNaive(ctx context.Context) error {
	gin.SetMode(gin.ReleaseMode)
	engine, hub := gin.New(), &naiveHub{clients: map[chan []byte]bool{}}
	engine.GET("/events", hub.events)
	engine.POST("/events", hub.publish)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	return http.Serve(listener, engine)
}

type naiveHub struct {
	mu      sync.Mutex
	clients map[chan []byte]bool
}

func (h *naiveHub) events(c *gin.Context) {
	events := make(chan []byte, 16)
	h.mu.Lock()
	h.clients[events] = true
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.clients, events)
		h.mu.Unlock()
	}()
	c.Header("Content-Type", "text/event-stream")
	c.Writer.Flush()
	c.Stream(func(w io.Writer) bool {
		select {
		case e := <-events:
			_, err := w.Write(e)
			return err == nil
		case <-c.Request.Context().Done():
			return false
		}
	})
}

func (h *naiveHub) publish(c *gin.Context) {
	event, err := io.ReadAll(c.Request.Body)
	if err != nil {
		c.Status(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for client := range h.clients {
		select {
		case client <- event:
		default: // the client is too slow: the naive handler drops the event for it
		}
	}
	c.Status(http.StatusNoContent)
}

func startNaive(ctx context.Context) (server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &naive{cmd: exec.CommandContext(ctx, self, "-naive")}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(out, &s.addr); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *naive) change(ctx context.Context) (string, error) {
	s.changes++
	id := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	event := fmt.Sprintf("id: %s\ndata: {\"id\":\"%032d\",\"dateModified\":\"%s\"}\n\n", id, s.changes, id)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/events", strings.NewReader(event))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	return id, resp.Body.Close()
}

func (s *naive) path(string) string { return "/events" }
func (s *naive) pid() int           { return s.cmd.Process.Pid }
func (s *naive) address() string    { return s.addr }

func (s *naive) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // the error only reports the kill
}
