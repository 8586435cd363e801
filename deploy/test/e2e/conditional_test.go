package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/clients"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// TestARepeatAfterACrashCreatesNoSecondAsset kills the registry during creations with an Idempotency-Key. If the
// client got an answer before the crash, a repeat must get the same answer again. If it got none, all repeats
// together must create one asset.
func TestARepeatAfterACrashCreatesNoSecondAsset(t *testing.T) {
	t.Parallel()
	const kills, clients = 6, 12
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	answered := map[string]string{} // the keys are Idempotency-Keys; the value is "" if no answer came
	for kill := range kills {
		registry := standalone(t, addr, dir, &processes.Output{})
		var mu sync.Mutex
		var working sync.WaitGroup
		var done atomic.Int64 // creations answered in this round
		for client := range clients {
			working.Go(func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("%d-%d-%d", kill, client, i)
					answer := a.createUnder(t, key)
					mu.Lock()
					answered[key] = answer
					mu.Unlock()
					if answer == "" {
						return
					}
					done.Add(1)
				}
			})
		}
		for done.Load() < clients {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(randtest.IntN(300)) * time.Millisecond) // so that the crash comes at a random moment
		expect.OK(t, registry.Kill())
		working.Wait()
	}
	standalone(t, addr, dir, &processes.Output{})
	lost := 0
	for key, before := range answered {
		first, second := a.createUnder(t, key), a.createUnder(t, key)
		if first == "" || first != second || before != "" && before != first {
			t.Errorf("%s: got %s\nthen %s\nwant %s", key, first, second, before)
		}
		if before == "" {
			lost++
		}
	}
	t.Logf("%d creations repeated, %d of them had no answer", len(answered), lost)
	if len(answered)-lost < kills*clients || lost < kills {
		t.Errorf("got %d answers and %d creations without one, want at least %d and %d", len(answered)-lost, lost,
			kills*clients, kills)
	}
}

// createUnder creates an asset with an Idempotency-Key. It returns the Location and the body of the answer, or ""
// if no complete answer came.
func (a api) createUnder(t *testing.T, key string) string {
	req, err := http.NewRequest("POST", a.base+"/api/"+a.version+"/assets", strings.NewReader(clients.Creation))
	if err != nil {
		t.Error(err)
		return ""
	}
	req.SetBasicAuth("broker", "")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := client.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("%s: got %d %s, want 201", key, resp.StatusCode, text)
	}
	return resp.Header.Get("Location") + " " + string(text)
}
