package e2e

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/randtest"
)

// TestKillDuringHandover kills the registry while an asset changes its owner. The
// same request after the restart completes the change from any point.
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
		time.Sleep(randtest.N(12 * time.Millisecond)) // a random moment of the crash
		if err := registry.Kill(); err != nil {
			t.Fatal(err)
		}
		if <-answered == http.StatusOK {
			done++
		}
		registry = standalone(t, addr, dir, &processes.Output{})
		want := "" // a transfer is used if the asset has its new owner
		if a.read(t, c.id).data()["owner"] == "broker3" {
			want = "/assets/" + c.id
		}
		equal(t, "usedFor after the crash", a.usedFor(t, made.id), want)
		a.takeOver(t, "broker3", c.id, made.id, token).must(t, 200)
		equal(t, "usedFor after the repeat", a.usedFor(t, made.id), "/assets/"+c.id)
		a.as(t, "broker3", created{id: c.id, token: made.token}, "PATCH", "/assets/"+c.id,
			fields{"description": "мій"}).must(t, 200)
		a.patch(t, c, fields{"description": "чужий"}).fails(t, 403, "body/data")
		if err := registry.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 10 requests had an answer before the crash", done)
}
