package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/redistest"
)

// TestAt runs the scenarios against the registry that E2E_BASE_URL names.
func TestAt(t *testing.T) {
	base := os.Getenv("E2E_BASE_URL")
	if base == "" {
		t.Skip("E2E_BASE_URL is not set")
	}
	Run(t, base)
}

func TestStandalone(t *testing.T) {
	addr := freeAddr(t)
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{},
		"--webhook-networks", "127.0.0.0/8", "--webhook-http")
	Run(t, "http://"+addr)
	t.Run("a webhook sends each change", func(t *testing.T) { testDelivery(t, api{"http://" + addr, "2.5"}) })
	t.Run("malformed HTTP gets one clear answer",
		func(t *testing.T) { testOnWire(t, func() (net.Conn, error) { return net.Dial("tcp", addr) }) })
	t.Run("texts that look like HTTP stay whole",
		func(t *testing.T) { testTextsLikeHTTP(t, api{"http://" + addr, "2.5"}) })
}

func TestSplit(t *testing.T) {
	stores := processes.Stores{
		Env: []string{"ASSETSVC_WEBHOOK_NETWORKS=127.0.0.0/8", "ASSETSVC_WEBHOOK_HTTP=true"},
	}
	base := split(t, filepath.Join(t.TempDir(), "data"), stores, &processes.Output{}).URL
	Run(t, base)
	t.Run("a webhook sends each change", func(t *testing.T) { testDelivery(t, api{base, "2.4"}) })
	t.Run("malformed HTTP gets one clear answer", func(t *testing.T) {
		testOnWire(t, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(base, "http://")) })
	})
	t.Run("texts that look like HTTP stay whole", func(t *testing.T) { testTextsLikeHTTP(t, api{base, "2.4"}) })
}

// TestSearch searches in one process, and in a process of its own.
func TestSearch(t *testing.T) {
	t.Run("one process", func(t *testing.T) {
		addr := freeAddr(t)
		standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{}, "--search")
		testFoundAssets(t, api{"http://" + addr, "2.5"})
	})
	t.Run("four processes", func(t *testing.T) {
		stores := processes.Stores{Search: true}
		base := split(t, filepath.Join(t.TempDir(), "data"), stores, &processes.Output{}).URL
		testFoundAssets(t, api{base, "2.5"})
	})
}

func TestSplitOnRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	base := split(t, filepath.Join(t.TempDir(), "data"), processes.Stores{Tokens: redis.URL()}, &processes.Output{}).URL
	Run(t, base)
	t.Run("without Redis reads work and writes get 503", func(t *testing.T) {
		a := api{base, "2.5"}
		c := a.publish(t, validAsset())
		redis.Kill(t)
		a.read(t, c.id).must(t, 200)
		a.page(t, "")
		refused := a.patch(t, c, fields{"description": "ні"}).fails(t, 503, "url/authorization")
		if refused.header.Get("Retry-After") == "" {
			t.Error("got no Retry-After, want one")
		}
		redis.Restart(t)
		a.patch(t, c, fields{"description": "так"}).must(t, 200)
	})
}

// newStores returns stores on the two servers, with a MongoDB database that no
// other test uses. Services have patience with the stand-in for MongoDB, which scans
// all assets for each operation.
func newStores(t *testing.T, mongo *mongotest.Server, redis *redistest.Server) processes.Stores {
	t.Helper()
	stores := processes.Stores{Assets: mongo.URI(t, fmt.Sprintf("e2e%016x", randtest.Uint64())), Tokens: redis.URL()}
	if !mongo.Real {
		stores.Env = []string{"ASSETSVC_STORE_TIMEOUT=50s", "ASSETSVC_TIMEOUT=50s", "GATEWAY_TIMEOUT=55s",
			"GATEWAY_READ_TIMEOUT=55s", "GATEWAY_LIST_TIMEOUT=55s"}
	}
	return stores
}

func TestSplitOnMongoAndRedis(t *testing.T) {
	t.Parallel()
	redis, mongo := redistest.Start(t), mongotest.Start(t)
	stores := newStores(t, mongo, redis)
	base := split(t, filepath.Join(t.TempDir(), "data"), stores, &processes.Output{}).URL
	Run(t, base)
	t.Run("owners keep their assets when Redis loses its data", func(t *testing.T) {
		stop, flushed := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(flushed)
			flushUntil(t, stop, redis)
		}()
		changeOwnAssets(t, api{base, "2.5"})
		close(stop)
		<-flushed
	})
}

// changeOwnAssets has six brokers change their assets with their token and with
// a wrong one.
func changeOwnAssets(t *testing.T, a api) {
	var working sync.WaitGroup
	for range 6 {
		working.Go(func() {
			for i := range 6 {
				c := a.publish(t, validAsset())
				a.patch(t, c, fields{"description": fmt.Sprint("change ", i)}).must(t, 200)
				c.token = strings.Repeat("0", 32)
				a.patch(t, c, fields{"description": "not by this token"}).fails(t, 403, "body/data")
			}
		})
	}
	working.Wait()
}

// flushUntil empties Redis each 5 ms until stop closes.
func flushUntil(t *testing.T, stop <-chan struct{}, redis *redistest.Server) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
			redis.Flush(t)
		}
	}
}

func TestARestartKeepsAllData(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	first := standalone(t, addr, dir, &processes.Output{})
	c, old := a.publish(t, validAsset()), a.liveLong(t)
	before, feed := a.read(t, c.id), a.page(t, "")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	standalone(t, addr, dir, &processes.Output{})
	t.Logf("the second start took %v", time.Since(started))
	equal(t, "asset after the restart", a.read(t, c.id).must(t, 200).text, before.text)
	equal(t, "feed after the restart", a.page(t, "").text, feed.text)
	checkLongLife(t, a.record(t, old.id, "broker", old.token), old)
	a.patch(t, c, fields{"description": "після"}).must(t, 200)
	if second := a.create(t, validAsset()); second.data()["assetID"] == c.data()["assetID"] {
		t.Errorf("got the assetID %v twice, want two", c.data()["assetID"])
	}
}

// TestKeysCanBeAddedAndRevokedWhileServing adds a key to the store of a running
// registry, and revokes it.
func TestKeysCanBeAddedAndRevokedWhileServing(t *testing.T) {
	redis := redistest.Start(t)
	a := api{split(t, filepath.Join(t.TempDir(), "data"), processes.Stores{Tokens: redis.URL()},
		&processes.Output{}).URL, "2.5"}
	add := []string{"new-key", "--broker", "Акме", "--id", "acme-1", "--store", redis.URL()}
	key := strings.TrimSpace(mustRun(t, add...))
	create := call{method: "POST", path: "/assets", key: key, body: data(validAsset())}
	if got := a.do(t, create).must(t, 201); got.data()["owner"] != "Акме" {
		t.Errorf("got the owner %v, want Акме", got.data()["owner"])
	}
	mustRefuse(t, "already", add...)
	mustRun(t, "revoke-key", "--id", "acme-1", "--store", redis.URL())
	soon(t, "a revoked key is refused", inForce, func() bool { return a.do(t, create).status == 401 })
	mustRefuse(t, "no such key", "revoke-key", "--id", "acme-1", "--store", redis.URL())
}
