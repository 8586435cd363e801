package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// TestKillDuringReferencedCreation kills the registry at random moments while it creates an asset under a
// reference. When the creation is repeated, there must be exactly one such asset.
// Promises: reference-once
func TestKillDuringReferencedCreation(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	found := 0
	for i := range 8 {
		registry := standalone(t, addr, dir, &processes.Output{})
		reference := fmt.Sprint("lot-", i)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			body, err := json.Marshal(data(validAsset()))
			if err != nil {
				return
			}
			req, err := http.NewRequest("POST", a.base+"/api/2.5/assets", bytes.NewReader(body))
			if err != nil {
				return
			}
			call{key: "broker", body: body}.with("Registry-Reference", reference).setHeader(req)
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
			}
		}()
		time.Sleep(randtest.N(60 * time.Millisecond)) // so that the crash comes at a random moment
		expect.OK(t, registry.Kill())
		<-answered
		registry = standalone(t, addr, dir, &processes.Output{})
		got := a.refer(t, "broker", reference, validAsset())
		if got.status == http.StatusOK {
			found++
		} else {
			got.must(t, http.StatusCreated)
		}
		equal(t, "assets with the reference", fmt.Sprint(a.referenced(t, "broker", reference)),
			fmt.Sprint([]string{text(got.data()["id"])}))
		expect.OK(t, registry.Kill())
	}
	t.Logf("%d of 8 repeats found the asset", found)
}
