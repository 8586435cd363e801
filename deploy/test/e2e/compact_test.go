package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// TestACompactedDataDirectoryHasNothingErased searches the file assets.db for an erased value. The value must be
// gone after `registry compact`.
func TestACompactedDataDirectoryHasNothingErased(t *testing.T) {
	t.Parallel()
	const secret = "таємний телефон +380441234567"
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	registry := standalone(t, addr, dir, &processes.Output{})
	c := a.publish(t, validAsset())
	// The value fills many pages, and the later writes reuse only some of them. So the value is still in the file.
	a.patch(t, c, fields{"description": strings.Repeat(" "+secret, 8_000)}).must(t, 200)
	c.answer = a.patch(t, c, fields{"description": "відкрито"}).must(t, 200)
	erased := fmt.Sprint("/assets/", c.id, "/revisions/3")
	a.do(t, call{method: "DELETE", path: erased, key: "administrator", token: c.token}).must(t, 200)
	want := fmt.Sprint(a.record(t, c.id, "broker", c.token))
	mustRefuse(t, "stop the registry", "compact", "--data", dir)
	expect.OK(t, registry.Stop())
	holds := func() bool {
		return bytes.Contains(expect.Get(os.ReadFile(filepath.Join(dir, "assets.db")))(t), []byte(secret))
	}
	if !holds() {
		t.Fatal("before: got no erased value in assets.db, want one")
	}
	said := mustRun(t, "compact", "--data", dir)
	if holds() {
		t.Error("after: got an erased value in assets.db, want none")
	}
	for _, name := range []string{"assets.db", "tokens.db"} {
		info := expect.Get(os.Stat(filepath.Join(dir, name)))(t)
		if info.Mode() != 0o600 || !strings.Contains(said, fmt.Sprintf("%d after\n", info.Size())) {
			t.Errorf("%s: got mode %v, %d bytes and the report %q, want mode 0600 and the size in it",
				name, info.Mode(), info.Size(), said)
		}
	}
	mustRun(t, "check", "--data", dir)
	mustRefuse(t, "no data directory", "compact", "--data", t.TempDir())
	standalone(t, addr, dir, &processes.Output{})
	equal(t, "record after the compaction", fmt.Sprint(a.record(t, c.id, "broker", c.token)), want)
	a.patch(t, c, fields{"title": "нова назва"}).must(t, 200)
}
