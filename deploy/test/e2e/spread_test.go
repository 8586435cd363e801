package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/redistest"
)

// newStores returns stores on the two servers, with a MongoDB database that no other test uses. It sets long timeouts
// for the services: the stand-in for MongoDB scans all assets for each operation, and a real set shares this machine.
func newStores(t *testing.T, mongo *mongotest.Server, redis *redistest.Server) processes.Stores {
	t.Helper()
	return processes.Stores{
		Assets: mongo.URI(t, fmt.Sprintf("e2e%016x", randtest.Uint64())), Tokens: redis.URL(),
		Env: []string{"ASSETSVC_STORE_TIMEOUT=50s", "ASSETSVC_TIMEOUT=50s", "GATEWAY_TIMEOUT=55s",
			"GATEWAY_READ_TIMEOUT=55s", "GATEWAY_LIST_TIMEOUT=55s", "FILESVC_TIMEOUT=50s", "FILESVC_STORE_TIMEOUT=50s"},
	}
}

// startSpread starts three asset services, two gateways, a search service and an auth service on the stores. It
// returns the address of a load balancer. Of every two requests, the balancer sends one to each gateway, in random
// order. The scenarios of the admin API need this: everywhere() in admin.go asks eight times in a row to reach each
// gateway. Each gateway spreads its requests over the asset services.
func startSpread(t *testing.T, dir string, stores processes.Stores) string {
	t.Helper()
	balancer := httptest.NewUnstartedServer(nil)
	t.Cleanup(balancer.Close)
	base := "http://" + balancer.Listener.Addr().String()
	stores.Env = append(stores.Env, "GATEWAY_BASE_URL="+base) // without it, each gateway's examples have its own address
	stores.Search, stores.AssetServices, stores.Gateways = true, 3, 2
	gateways := split(t, dir, stores, &processes.Output{}).URLs
	var mu sync.Mutex
	var other string // the gateway of the next request; if empty, the choice is random
	next := func() string {
		mu.Lock()
		defer mu.Unlock()
		if to := other; to != "" {
			other = ""
			return to
		}
		first := randtest.IntN(2)
		other = gateways[1-first]
		return gateways[first]
	}
	balancer.Config.Handler = &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100},
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse(next())
			if err != nil {
				t.Error(err)
				return
			}
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.RawQuery = to.Scheme, to.Host, r.In.URL.RawQuery
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1,
	}
	balancer.Start()
	return base
}

// TestSpreadOnMongoAndRedis sends requests for the same assets through several services. Whatever a service
// remembers about an asset must not become wrong when another service changes the asset.
// Promises: any-gateway
func TestSpreadOnMongoAndRedis(t *testing.T) {
	t.Parallel()
	redis, mongo, admin := redistest.Start(t), mongotest.Start(t), freeAddr(t)
	stores, dir := newStores(t, mongo, redis), filepath.Join(t.TempDir(), "data")
	stores.Env = append(stores.Env, "ASSETSVC_WEBHOOK_NETWORKS=127.0.0.0/8", "ASSETSVC_WEBHOOK_HTTP=true",
		"AUTHSVC_ADMIN_ADDR="+admin)
	base := startSpread(t, dir, stores)
	runIn(t, base, "2.5") // the other versions are only views of the same assets, and the stand-in is slow
	t.Run("a webhook sends each change", func(t *testing.T) { testDelivery(t, api{base, "2.5"}) })
	t.Run("a webhook with filters sends some", func(t *testing.T) { testFilteredDelivery(t, api{base, "2.5"}) })
	testFoundAssets(t, api{base, "2.5"})
	t.Run("the admin API", func(t *testing.T) {
		key := adminKey(t, "authsvc", "--store", redis.URL(), "--secret-file", filepath.Join(dir, "secret"))
		RunAdmin(t, base, "http://"+admin, key, filepath.Join(bin, "registryctl"))
	})
}
