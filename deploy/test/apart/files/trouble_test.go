package files

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"asset-registry/shared/porttest"
	"asset-registry/shared/s3test"
	"asset-registry/shared/testing/expect"
)

// soon is much longer than a request takes, and much shorter than the time limit for a transfer to the bucket.
const soon = 3 * time.Second

// TestAStoreInTrouble slows down or stops the connection to the bucket while files are uploaded. Each upload must
// be stored, or refused with 503 and Retry-After. Assets must be written and read as before. When the bucket is
// well again, all acknowledged files must be there.
func TestAStoreInTrouble(t *testing.T) {
	store := s3test.Start(t, false, bucket)
	for name, toxics := range map[string][]string{
		"100 KB a second": {`{"type":"bandwidth","stream":"upstream","attributes":{"rate":100}}`,
			`{"type":"bandwidth","stream":"downstream","attributes":{"rate":100}}`},
		"no byte comes": {`{"type":"timeout","stream":"upstream","attributes":{"timeout":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
			addr, err := porttest.FreeAddr()
			expect.OK(t, err)
			proxy := toxiproxy.NewProxy(control, bucket, addr, store.Addr)
			expect.OK(t, proxy.Start())
			t.Cleanup(proxy.Stop)
			r := newRegistry(t)
			r.start()
			r.stop()
			r.must("files", "move", "--to", "s3+http://"+addr+"/"+bucket+"/"+addr)
			r.start()
			var mu sync.Mutex
			kept := map[string]string{r.mustUpload("kept"): "kept"}
			before := r.slowest(20)
			for _, toxic := range toxics {
				expect.Get(proxy.Toxics.AddToxicJson(strings.NewReader(toxic)))(t)
			}
			var wg sync.WaitGroup
			for n := range 4 {
				wg.Go(func() {
					text := strings.Repeat(fmt.Sprintf("%d ", n), 3<<20)
					path, a, err := r.upload(text)
					if err == nil && a.status == http.StatusOK {
						mu.Lock()
						kept[path] = text
						mu.Unlock()
					} else if err != nil || a.status != http.StatusServiceUnavailable || a.retry == "" {
						t.Errorf("upload: got %d, Retry-After %q and %v, want 503 with Retry-After", a.status, a.retry, err)
					}
				})
			}
			during := r.slowest(60)
			wg.Wait()
			t.Logf("the slowest request of assets: %v before, %v during", before, during)
			if during > soon {
				t.Errorf("a request of assets took %v while the bucket was in trouble, want less than %v", during, soon)
			}
			proxy.Toxics.ResetToxics(t.Context())
			kept[r.mustUpload("new")] = "new"
			r.mustHave("when the bucket was well again", kept)
		})
	}
}

// slowest writes and reads n assets, one after another, and returns how long the slowest request took.
func (r *registry) slowest(n int) (longest time.Duration) {
	r.t.Helper()
	for range n {
		for _, c := range []struct {
			method, contentType, body string
			status                    int
		}{{http.MethodPost, "application/json", newAsset, http.StatusCreated}, {http.MethodGet, "", "", http.StatusOK}} {
			start := time.Now()
			a, err := r.ask("broker", c.method, "/api/2.5/assets", c.contentType, strings.NewReader(c.body))
			longest = max(longest, time.Since(start))
			if err != nil || a.status != c.status {
				r.t.Errorf("%s of assets: got %d %s and %v, want %d", c.method, a.status, a.text, err, c.status)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return longest
}

const newAsset = `{"data":{"assetType":"bounce","title":"x","description":"new","items":[{"description":"о",` +
	`"classification":{"scheme":"CAV-PS","id":"06111000-3","description":"з"},"address":{"countryName":"У"},` +
	`"unit":{"code":"c"},"quantity":1,"registrationDetails":{"status":"unknown"}}],` +
	`"decisions":[{"decisionDate":"2026-11-20T12:00:00+02:00","decisionID":"1"}],` +
	`"assetCustodian":{"name":"Ф","identifier":{"scheme":"UA-EDR","id":"1"},"address":{"countryName":"У"},` +
	`"contactPoint":{"name":"Д","telephone":"1"}}}}`
