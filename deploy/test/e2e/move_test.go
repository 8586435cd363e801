package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/redistest"
)

// command runs a command of the registry and returns what it printed.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	build(t)
	text, err := exec.Command(filepath.Join(bin, "registry"), args...).CombinedOutput()
	return string(text), err
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	text, err := command(t, args...)
	if err != nil {
		t.Fatalf("registry %s: %v: %s", strings.Join(args, " "), err, text)
	}
	return text
}

// mustRefuse runs a command that says in one line why it cannot be done.
func mustRefuse(t *testing.T, says string, args ...string) {
	t.Helper()
	text, err := command(t, args...)
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || strings.Count(text, "\n") != 1 ||
		!strings.Contains(text, says) {
		t.Errorf("registry %s: %v: %s; want %q", strings.Join(args, " "), err, text, says)
	}
}

// TestBackup takes a backup while the registry is at work: it holds all that
// was acknowledged before, and can be lived from.
func TestBackup(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	registry := standalone(t, addr, dir, &processes.Output{})
	before, during := &ledger{}, &ledger{}
	for range 200 {
		before.write(a)
	}
	stop := make(chan struct{})
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			for work := true; work; {
				select {
				case <-stop:
					return
				default:
					work = during.write(a)
				}
			}
		})
	}
	file := filepath.Join(t.TempDir(), "backup.tar")
	mustRun(t, "backup", "--data", dir, "--to", file)
	mustRefuse(t, "is there already", "backup", "--data", dir, "--to", file)
	close(stop)
	working.Wait()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	if err := registry.Kill(); err != nil {
		t.Fatal(err)
	}
	asleep := filepath.Join(t.TempDir(), "asleep.tar") // of what a crash has left
	mustRun(t, "backup", "--data", dir, "--to", asleep)

	for _, c := range []struct {
		name string
		from string
	}{{"taken at work", file}, {"taken while it was stopped", asleep}} {
		t.Run(c.name, func(t *testing.T) {
			addr, restored := freeAddr(t), filepath.Join(t.TempDir(), "a", "restored")
			mustRun(t, "restore", "--from", c.from, "--data", restored)
			mustRefuse(t, "is not empty", "restore", "--from", c.from, "--data", restored)
			standalone(t, addr, restored, &processes.Output{})
			a := api{"http://" + addr, "2.5"}
			before.check(t, a)
			f := newFollower(a, false, "2000-01-01T00:00:00+00:00")
			before.checkFeed(t, []*follower{f})
			if c.from == asleep {
				during.check(t, a)
				during.checkFeed(t, []*follower{f})
			}
			if again := a.publish(t, validAsset()); text(again.data()["dateModified"]) <= before.assets[0].modified {
				t.Error("a change after the restoration stands before one that the backup has")
			}
		})
	}
}

func TestABackupThatIsNoneIsNotRestored(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	standalone(t, addr, dir, &processes.Output{})
	whole := filepath.Join(t.TempDir(), "whole.tar")
	mustRun(t, "backup", "--data", dir, "--to", whole)
	backup, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		text []byte
		says string
	}{
		{"cut off", backup[:len(backup)/2], "read"},
		{"empty", nil, "FORMAT is missing"},
		{"no tar", []byte(strings.Repeat("x", 2000)), "read"},
		{"tampered", append([]byte("../escape\x00"), backup[10:]...), "read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := t.TempDir()
			file := filepath.Join(parent, "backup.tar")
			if err := os.WriteFile(file, c.text, 0o600); err != nil {
				t.Fatal(err)
			}
			mustRefuse(t, c.says, "restore", "--from", file, "--data", filepath.Join(parent, "data"))
			if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
				t.Errorf("it left %v, %v", entries, err)
			}
		})
	}
}

// TestMove moves a registry to MongoDB and Redis, with a move that is killed
// again and again before, and compares all that anybody can see.
func TestMove(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	old := api{"http://" + addr, "2.5"}
	registry := standalone(t, addr, dir, &processes.Output{})
	var all []created
	for i := range 80 {
		f := validAsset()
		if i%5 == 0 {
			f = f.set("mode", "test")
		}
		c := old.create(t, f)
		if i%4 > 0 {
			c.answer = old.patch(t, c, fields{"status": "pending"}).must(t, 200)
		}
		if i%3 == 0 {
			c.answer = old.patch(t, c, fields{"description": "інший"}).must(t, 200)
		}
		all = append(all, c)
	}
	redis, mongo := redistest.Start(t), mongotest.Start(t)
	bePatient(t, mongo)
	stores := processes.Stores{Assets: mongo.URI(t, fmt.Sprintf("move%016x", rand.Uint64())), Tokens: redis.URL()}
	move := []string{"migrate", "--from", "file:" + dir, "--to", stores.Assets, "--redis", stores.Tokens}
	mustRefuse(t, "in use", move...)
	feed := old.page(t, "?mode=_all_&limit=1000").entries
	if err := registry.Stop(); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		cmd := exec.Command(filepath.Join(bin, "registry"), move...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+60*i) * time.Millisecond) // the moment of the crash is what is random here
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // it was killed, and says so; or was done already
	}
	// it was done before the last kill
	if text, err := command(t, move...); err != nil && !strings.Contains(text, "holds assets already") {
		t.Fatalf("%v: %s", err, text)
	}
	mustRefuse(t, "holds assets already", move...)

	moved := t.TempDir()
	secret, err := os.ReadFile(filepath.Join(dir, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(moved, "secret"), secret, 0o600); err != nil {
		t.Fatal(err)
	}
	now := api{split(t, moved, stores, &processes.Output{}).URL, "2.5"}
	if got := now.page(t, "?mode=_all_&limit=1000").entries; !reflect.DeepEqual(got, feed) {
		t.Errorf("the feed was\n%v\nand is\n%v", feed, got)
	}
	newest := feed[len(feed)-1].modified
	for i, c := range all {
		if got := now.read(t, c.id).must(t, 200).data(); !reflect.DeepEqual(got, c.data()) {
			t.Errorf("asset %s was\n%v\nand is\n%v", c.id, c.data(), got)
		}
		if i%10 > 0 {
			continue
		}
		changed := now.patch(t, c, fields{"title": "після"}).must(t, 200).data()
		if text(changed["dateModified"]) <= newest {
			t.Errorf("a change after the move stands at %v, before %s", changed["dateModified"], newest)
		}
	}
	if c := now.create(t, validAsset()); c.data()["assetID"] == all[len(all)-1].data()["assetID"] {
		t.Errorf("the number %v was given twice", c.data()["assetID"])
	}
}

func TestMoveRefuses(t *testing.T) {
	redis, mongo := redistest.Start(t).URL(), mongotest.Start(t).URI(t, fmt.Sprintf("refuse%08x", rand.Uint32()))
	empty := t.TempDir()
	mustRefuse(t, "no data directory", "migrate", "--from", "file:"+empty, "--to", mongo, "--redis", redis)
	mustRefuse(t, `--from must be "file:"`, "migrate", "--from", empty, "--to", mongo, "--redis", redis)
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	registry := standalone(t, addr, dir, &processes.Output{})
	if err := registry.Stop(); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, "malformed", "migrate", "--from", "file:"+dir, "--to", "postgres://user:hunter2@host/db", "--redis",
		redis)
	if text, _ := command(t, "migrate", "--from", "file:"+dir, "--to",
		"mongodb://user:hunter2@127.0.0.1:1/db?serverSelectionTimeoutMS=500", "--redis",
		"redis://:hunter3@127.0.0.1:1"); strings.Contains(text, "hunter") {
		t.Errorf("it tells a password: %s", text)
	}
}
