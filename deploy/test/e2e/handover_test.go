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

// TestKillDuringHandover kills the registry while an asset changes its owner. After the restart, the same request
// must complete the change, whatever the kill interrupted.
func TestKillDuringHandover(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	done := 0
	for range 10 {
		registry := standalone(t, addr, dir, &processes.Output{})
		c, token := a.publishWithTransfer(t)
		made := a.makeTransfer(t, "broker3")
		answered := make(chan int, 1)
		go func() {
			answered <- sendAs(a, "broker3", "POST", "/api/2.5/assets/"+c.id+"/ownership",
				data(fields{"id": made.id, "transfer": token}))
		}()
		time.Sleep(randtest.N(12 * time.Millisecond)) // so that the crash comes at a random moment
		expect.OK(t, registry.Kill())
		if <-answered == http.StatusOK {
			done++
		}
		registry = standalone(t, addr, dir, &processes.Output{})
		want := "" // usedFor of the transfer must be empty, unless the asset has its new owner
		if a.read(t, c.id).data()["owner"] == "broker3" {
			want = "/assets/" + c.id
		}
		equal(t, "usedFor after the crash", a.usedFor(t, made.id), want)
		a.takeOver(t, "broker3", c.id, made.id, token).must(t, 200)
		equal(t, "usedFor after the repeat", a.usedFor(t, made.id), "/assets/"+c.id)
		a.as(t, "broker3", created{id: c.id, token: made.token}, "PATCH", "/assets/"+c.id,
			fields{"description": "мій"}).must(t, 200)
		a.patch(t, c, fields{"description": "чужий"}).fails(t, 403, "body/data")
		expect.OK(t, registry.Kill())
	}
	t.Logf("%d of 10 requests had an answer before the crash", done)
}

// TestKillDuringRemoval kills the registry while a draft is removed. After the restart the draft either exists or
// is gone. If the same request is sent again, the draft must be gone.
func TestKillDuringRemoval(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	done, gone := 0, 0
	for range 8 {
		registry := standalone(t, addr, dir, &processes.Output{})
		c := a.create(t, validAsset())
		answered := make(chan int, 1)
		go func() { answered <- sendAsOwner(a, c, "DELETE", "/api/2.5/assets/"+c.id) }()
		time.Sleep(randtest.N(8 * time.Millisecond)) // so that the crash comes at a random moment
		expect.OK(t, registry.Kill())
		status := <-answered
		registry = standalone(t, addr, dir, &processes.Output{})
		found := a.do(t, call{method: "GET", path: "/assets/" + c.id}).status
		switch {
		case status == http.StatusNoContent && found != http.StatusNotFound:
			t.Errorf("got %d for a draft whose removal was acknowledged, want 404", found)
		case found == http.StatusNotFound:
			gone++
		default:
			a.remove(t, "broker", c.id, c.token).must(t, 204)
		}
		if status == http.StatusNoContent {
			done++
		}
		a.isGone(t, c)
		expect.OK(t, registry.Kill())
	}
	t.Logf("%d of 8 requests had an answer before the crash, and %d drafts were gone", done, gone)
}

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

// sendAsOwner sends a request without a body as the owner of an asset. It returns the status, or 0 if no answer
// came.
func sendAsOwner(a api, c created, method, path string) int {
	req, err := http.NewRequest(method, a.base+path, nil)
	if err != nil {
		return 0
	}
	call{key: "broker", token: c.token}.setHeader(req)
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}
