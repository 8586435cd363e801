package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/randtest"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

var syncKills = flag.Int("sync.kills", 20, "how often TestACopyIsEqualAfterKills kills registryctl sync")

// TestACopyIsEqualAfterKills kills registryctl sync at random moments, and sometimes the registry, while clients
// write and new snapshots replace old ones. Some rounds begin with an empty copy. At the end, each copy must equal
// the whole feed, byte by byte.
// Promises: copy-whole, copy-kills
func TestACopyIsEqualAfterKills(t *testing.T) {
	const writers = 6
	kills := *syncKills
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	v := verifying{api: api{"http://" + addr, "2.5"}, data: t.TempDir()}
	args := []string{"--snapshot-interval", "1s", "--snapshot-keep", "1"}
	registry := standalone(t, addr, dir, &processes.Output{}, args...)
	stop := writeOn(t, v.api, writers)
	v.newCopy(t, "")
	var copies []string
	unfinished := 0
	for kill := range kills {
		if kill%5 == 0 {
			copies = append(copies, filepath.Join(t.TempDir(), "copy"))
		}
		into := copies[len(copies)-1]
		cmd := exec.Command(filepath.Join(bin, "registryctl"), "--url", v.base, "sync", into)
		expect.OK(t, cmd.Start())
		// Wait, so that the kill comes at a random moment.
		time.Sleep(time.Duration(50+randtest.IntN(1000)) * time.Millisecond)
		if kill%6 == 5 {
			expect.OK(t, registry.Kill())
			registry = standalone(t, addr, dir, &processes.Output{}, args...)
		}
		expect.OK(t, cmd.Process.Kill())
		_ = cmd.Wait() // the error only says that the process was killed
		if !sound(t, into).Complete {
			unfinished++
		}
	}
	written := stop()
	t.Logf("%d of %d kills came before the end of the feed; %d acknowledged writes", unfinished, kills, written)
	for _, into := range copies {
		v.mustRun(t, "sync", "--once", into)
		v.equalCopy(t, into)
	}
}

// writeOn starts writers, which go on while the registry restarts. The returned function stops them, and returns
// how many writes were acknowledged.
func writeOn(t *testing.T, a api, writers int) (stop func() int) {
	t.Helper()
	ledger, ended := &ledger{}, make(chan struct{})
	var working sync.WaitGroup
	for range writers {
		working.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if !ledger.write(a) {
					time.Sleep(50 * time.Millisecond) // the registry is being restarted
				}
			}
		})
	}
	end := sync.OnceFunc(func() { close(ended); working.Wait() })
	t.Cleanup(end)
	return func() int {
		end()
		return ledger.acknowledged
	}
}

// sound checks that a copy does not contradict itself, and returns its state.
func sound(t *testing.T, dir string) replica.State {
	t.Helper()
	copied := expect.Get(replica.Open(dir))(t)
	defer copied.Close()
	if _, err := copied.Check(); err != nil {
		t.Errorf("got %v, want a sound copy", err)
	}
	return copied.State()
}

// equalCopy compares the export of a copy with the whole feed, byte by byte.
func (v *verifying) equalCopy(t *testing.T, dir string) {
	t.Helper()
	sound(t, dir)
	all := v.entries(t)
	var want strings.Builder
	for _, id := range slices.Sorted(maps.Keys(all)) {
		want.WriteString(all[id] + "\n")
	}
	got := v.mustRun(t, "sync", "export", dir)
	if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(got, "\n")); diff != "" || len(all) == 0 {
		t.Errorf("the copy of %d assets differs from the feed (-feed +copy):\n%.10000s", len(all), diff)
	}
}

// entries returns the text of each entry of the whole feed. The keys are ids of assets.
func (v *verifying) entries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	v.wholePages(t, "", func(entry []byte) {
		var head struct{ ID string }
		expect.OK(t, json.Unmarshal(entry, &head))
		all[head.ID] = string(entry)
	})
	return all
}

// TestACopyThatWasMadeWrongIsFound damages the files from which a copy is made, and the copy itself. It also puts a
// registry with different data at the same address. Each of these faults must be reported.
// Promises: copy-whole, copy-files, copy-verified
func TestACopyThatWasMadeWrongIsFound(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), t.TempDir()
	v := verifying{api: api{"http://" + addr, "2.5"}, data: filepath.Join(dir, "data")}
	first := standalone(t, addr, v.data, &processes.Output{}, "--snapshot-interval", "0s")
	v.readKeys(t, 1)
	var newest created
	for range 20 {
		newest = v.publish(t, validAsset())
	}
	v.publish(t, validAsset().set("mode", "test"))
	mustRun(t, "snapshot", "--data", v.data)
	into := filepath.Join(dir, "copy")
	damageSegments(t, v.data)
	v.refuses(t, "the segment is damaged", "sync", "--once", into)
	v.refuses(t, "not complete", "sync", "export", into)
	mustRun(t, "snapshot", "--data", v.data)
	v.await(t, v.patch(t, newest, fields{"title": "after the snapshot"}).must(t, 200))
	v.mustRun(t, "sync", "--once", into)
	v.equalCopy(t, into)

	report := v.verifyCopy(t, into, "--verify")
	equal(t, "matched", at(report, "matched"), any(20.0))
	equal(t, "in test mode", at(report, "test"), any(1.0))
	report = v.verifyCopy(t, into, "--verify-sample", "5")
	equal(t, "not in the sample", at(report, "unproven"), any(16.0))
	v.refuses(t, "no valid signature", "sync", "--verify", "--public-key", otherKey(t, dir), into)
	forge(t, into, newest.id, "after the snapshot", "after the forgery!")
	stdout, stderr, err := v.run(t, "sync", "--verify", "--public-key", v.keys[0], into)
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(stderr, "asset "+newest.id+": differs") ||
		!strings.Contains(stdout, "differs: 1") {
		t.Errorf("a forged asset: got %v, %q, %q; want exit code 1 and its id", err, stdout, stderr)
	}

	expect.OK(t, first.Stop())
	v.data = filepath.Join(dir, "other")
	standalone(t, addr, v.data, &processes.Output{}, "--snapshot-interval", "0s")
	v.publish(t, validAsset())
	v.refuses(t, "other data than the copy", "sync", "--once", into)
	v.refuses(t, "--restart", "sync", into)
	v.mustRun(t, "sync", "--once", "--restart", into)
	v.equalCopy(t, into)
}

// verifyCopy verifies a copy against the log, and returns the report.
func (v *verifying) verifyCopy(t *testing.T, dir string, how ...string) (report map[string]any) {
	t.Helper()
	args := append([]string{"-o", "json", "sync", "--public-key", v.keys[0], dir}, how...)
	printed := v.mustRun(t, args...)
	if err := json.Unmarshal([]byte(printed), &report); err != nil {
		t.Fatalf("got %s, %v, want a report", printed, err)
	}
	return report
}

// damageSegments changes one byte in each file of the snapshots.
func damageSegments(t *testing.T, data string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "snapshots", "segments", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got the segments %v, %v; want some", files, err)
	}
	for _, file := range files {
		text := expect.Get(os.ReadFile(file))(t)
		text[len(text)/2] ^= 1
		expect.OK(t, os.WriteFile(file, text, 0o600))
	}
}

// forge changes the stored data of an asset in a copy. It replaces the text `part` by the text `by`.
func forge(t *testing.T, dir, id, part, by string) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "copy.db"), 0o600, nil)
	expect.OK(t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(key, value []byte) error {
				if !bytes.Contains(value, []byte(`"id":"`+id)) {
					return nil
				}
				if !bytes.Contains(value, []byte(part)) {
					t.Errorf("got %s in the copy, want %q in it", value, part)
				}
				return b.Put(key, bytes.ReplaceAll(value, []byte(part), []byte(by)))
			})
		})
	})
	expect.OK(t, errors.Join(err, db.Close()))
}
