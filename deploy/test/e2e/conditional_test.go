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
	"asset-registry/shared/mongotest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/redistest"
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
		if err := registry.Kill(); err != nil {
			t.Fatal(err)
		}
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

// TestTwoAssetServicesAgreeOnConditionalWrites sends the same creations and the same conditional changes through
// two gateways. Each gateway uses a different asset service. A creation must give all clients the same answer, and
// only one conditional change may succeed.
func TestTwoAssetServicesAgreeOnConditionalWrites(t *testing.T) {
	t.Parallel()
	redis, mongo := redistest.Start(t), mongotest.Start(t)
	stores := newStores(t, mongo, redis)
	dir := filepath.Join(t.TempDir(), "data") // directory of the secret that both asset services use
	var apis []api
	for range 2 {
		apis = append(apis, api{split(t, dir, stores, &processes.Output{}).URL, "2.5"})
	}
	for i := range 5 {
		answers := make([]string, 20)
		var working sync.WaitGroup
		for client := range answers {
			working.Go(func() {
				// Location is cut off, because it contains the gateway's address.
				_, answers[client], _ = strings.Cut(apis[client%2].createUnder(t, fmt.Sprint("key-", i)), " ")
			})
		}
		working.Wait()
		for _, answer := range answers {
			if answer == "" || answer != answers[0] {
				t.Errorf("got %s\nwant %s", answer, answers[0])
			}
		}
	}
	c := apis[0].create(t, validAsset())
	statuses := make(chan int, 50)
	var working sync.WaitGroup
	for client := range cap(statuses) {
		working.Go(func() {
			statuses <- apis[client%2].do(t, call{
				method: "PATCH", path: "/assets/" + c.id, key: "broker", token: c.token,
				body:   data(fields{"title": fmt.Sprint("client ", client)}),
				header: map[string]string{"If-Match": c.header.Get("ETag")},
			}).status
		})
	}
	working.Wait()
	close(statuses)
	counted := map[int]int{}
	for status := range statuses {
		counted[status]++
	}
	if counted[200] != 1 || counted[412] != 49 {
		t.Errorf("got the statuses %v, want one 200 and 49 of 412", counted)
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
