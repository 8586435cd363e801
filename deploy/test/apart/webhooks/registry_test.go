package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// registry is a registry process with assets, which the test changes one after another.
type registry struct {
	t       *testing.T
	addr    string
	data    string
	flags   []string
	output  processes.Output
	process *processes.Process
	body    []byte // body of the request that creates an asset
	client  *http.Client

	mu      sync.Mutex
	assets  []owned
	changed map[string]string // id -> dateModified of the last acknowledged change
}

// owned is an asset and its owner token.
type owned struct{ id, token string }

// startRegistry starts a registry and creates assets.
func startRegistry(t *testing.T, assets int, flags ...string) *registry {
	t.Helper()
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	r := &registry{t: t, addr: addr, data: filepath.Join(t.TempDir(), "data"), changed: map[string]string{},
		client: &http.Client{Timeout: 10 * time.Second}}
	r.flags = append([]string{"serve", "--sandbox", "--addr", addr, "--data", r.data, "--log-level", "error",
		"--webhook-networks", "127.0.0.0/8", "--webhook-http", "--snapshot-interval", "0",
		"--no-limits"}, flags...)
	r.body, err = os.ReadFile("../../../bench/live/asset.json")
	expect.OK(t, err)
	r.start()
	t.Cleanup(func() {
		if err := r.process.Stop(); err != nil {
			t.Errorf("stop the registry: %v; it printed: %s", err, r.output.String())
		}
	})
	for range assets {
		expect.OK(t, r.add())
	}
	return r
}

func (r *registry) start() {
	r.t.Helper()
	process, err := processes.Start(context.Background(), r.addr, &r.output, filepath.Join(*bin, "registry"), r.flags...)
	if err != nil {
		r.t.Fatalf("start the registry: %v; it printed: %s", err, r.output.String())
	}
	r.process = process
}

// ask sends a request with a key, and decodes the answer's body.
func (r *registry) ask(method, path, key, token string, body []byte, answer any) error {
	q, err := http.NewRequest(method, "http://"+r.addr+"/api/2.5"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	q.SetBasicAuth(key, "")
	if token != "" {
		q.Header.Set("X-Access-Token", token)
	}
	response, err := r.client.Do(q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: got %d: %s", method, path, response.StatusCode, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// add creates and publishes an asset.
func (r *registry) add() error {
	var created struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	if err := r.ask(http.MethodPost, "/assets", "broker", "", r.body, &created); err != nil {
		return err
	}
	a := owned{created.Data.ID, created.Access.Token}
	if err := r.change(a, `{"data":{"status":"pending"}}`); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.assets = append(r.assets, a)
	return nil
}

// change changes an asset, and records the change if it is acknowledged.
func (r *registry) change(a owned, body string) error {
	var changed struct {
		Data struct{ DateModified string }
	}
	if err := r.ask(http.MethodPatch, "/assets/"+a.id, "broker", a.token, []byte(body), &changed); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed[a.id] = max(r.changed[a.id], changed.Data.DateModified)
	return nil
}

// write changes the assets one after another until ctx ends. The parameter `rate` is the number of changes per
// second. Requests may fail while the registry is down.
func (r *registry) write(ctx context.Context, rate int) (done int) {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	turns := make(chan struct{}, 16)
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return i
		case <-ticker.C:
		}
		turns <- struct{}{}
		all.Go(func() {
			// A failed change is not recorded, so no receiver has to get it.
			_ = r.change(r.assets[i%len(r.assets)], fmt.Sprintf(`{"data":{"title":"change %d"}}`, i))
			<-turns
		})
	}
}

// hook creates a webhook and returns its keys.
func (r *registry) hook(url, fields string) (id, secret, public string) {
	r.t.Helper()
	var created struct {
		Access struct{ Secret string }
		Data   struct{ ID, PublicKey string }
	}
	body := fmt.Appendf(nil, `{"data":{"url":%q,"opt_fields":%q}}`, url, fields)
	expect.OK(r.t, r.ask(http.MethodPost, "/webhooks", "administrator", "", body, &created))
	return created.Data.ID, created.Access.Secret, created.Data.PublicKey
}
