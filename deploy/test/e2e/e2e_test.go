package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
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
	t.Run("a webhook with filters sends some", func(t *testing.T) { testFilteredDelivery(t, api{"http://" + addr, "2.5"}) })
	t.Run("a webhook tells of a file that comes late",
		func(t *testing.T) { testLateDelivery(t, api{"http://" + addr, "2.5"}) })
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
	t.Run("a webhook with filters sends some", func(t *testing.T) { testFilteredDelivery(t, api{base, "2.4"}) })
	t.Run("a webhook tells of a file that comes late", func(t *testing.T) { testLateDelivery(t, api{base, "2.5"}) })
	t.Run("malformed HTTP gets one clear answer", func(t *testing.T) {
		testOnWire(t, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(base, "http://")) })
	})
	t.Run("texts that look like HTTP stay whole", func(t *testing.T) { testTextsLikeHTTP(t, api{base, "2.4"}) })
}

// TestSearch runs the search scenarios twice: with the search in the registry's process, and with the search
// service as a separate process.
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

func TestARestartKeepsAllData(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	first := standalone(t, addr, dir, &processes.Output{})
	c, old := a.publish(t, validAsset()), a.liveLong(t)
	before, feed := a.read(t, c.id), a.page(t, "")
	expect.OK(t, first.Stop())
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
