package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestABackupHasAllEarlierWrites takes a backup of a busy registry and one of a stopped registry, restores both,
// and checks that every acknowledged write is there.
func TestABackupHasAllEarlierWrites(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	registry := standalone(t, addr, dir, &processes.Output{})
	before, during := &ledger{}, &ledger{}
	for range 200 {
		before.write(a)
	}
	old, kept := a.liveLong(t), a.keepFile(t)
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
		t.Errorf("got the backup %v, %v, want mode 0600", info, err)
	}
	expect.OK(t, registry.Kill())
	asleep := filepath.Join(t.TempDir(), "asleep.tar") // the backup of the data directory after the kill
	mustRun(t, "backup", "--data", dir, "--to", asleep)

	for _, c := range []struct{ name, from string }{{"of a busy registry", file}, {"of a stopped registry", asleep}} {
		t.Run(c.name, func(t *testing.T) {
			addr, restored := freeAddr(t), filepath.Join(t.TempDir(), "a", "restored")
			mustRun(t, "restore", "--from", c.from, "--data", restored)
			mustRun(t, "check", "--files", "--data", restored)
			mustRefuse(t, "is not empty", "restore", "--from", c.from, "--data", restored)
			standalone(t, addr, restored, &processes.Output{})
			a := api{"http://" + addr, "2.5"}
			before.check(t, a)
			f := newFollower(a, false, "2000-01-01T00:00:00+00:00")
			before.checkFeed(t, []*follower{f})
			before.checkRecords(t, a)
			checkLongLife(t, a.record(t, old.id, "broker", old.token), old)
			kept.reads(t, a)
			if c.from == asleep {
				during.check(t, a)
				during.checkFeed(t, []*follower{f})
				during.checkRecords(t, a)
			}
			if again := a.publish(t, validAsset()); text(again.data()["dateModified"]) <= before.assets[0].modified {
				t.Errorf("got dateModified %v after the restore, want it after %s", again.data()["dateModified"],
					before.assets[0].modified)
			}
		})
	}
}

// TestARestoreKeepsARemovedFileAway takes a file down after a backup, and then restores the backup. The file must
// not come back.
func TestARestoreKeepsARemovedFileAway(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	registry := standalone(t, addr, dir, &processes.Output{})
	kept := api{"http://" + addr, "2.5"}.keepFile(t)
	backup := filepath.Join(t.TempDir(), "backup.tar")
	mustRun(t, "backup", "--data", dir, "--to", backup)
	kept.takeDown(t)
	expect.OK(t, registry.Stop())
	restored := filepath.Join(t.TempDir(), "restored")
	mustRefuse(t, "no such file", "restore", "--from", backup, "--data", restored, "--former", dir+"x")
	mustRun(t, "restore", "--from", backup, "--data", restored, "--former", dir)
	mustRun(t, "check", "--files", "--data", restored)
	output := &processes.Output{}
	standalone(t, addr, restored, output)
	kept.isGone(t)
	await(t, output, "files were removed again")
}

func TestRestoreRefusesAFileThatIsNoBackup(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	standalone(t, addr, dir, &processes.Output{})
	whole := filepath.Join(t.TempDir(), "whole.tar")
	mustRun(t, "backup", "--data", dir, "--to", whole)
	backup := expect.Get(os.ReadFile(whole))(t)
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
			expect.OK(t, os.WriteFile(file, c.text, 0o600))
			mustRefuse(t, c.says, "restore", "--from", file, "--data", filepath.Join(parent, "data"))
			if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
				t.Errorf("got %v, %v beside the file, want nothing", entries, err)
			}
		})
	}
}

// TestMigrateKeepsAllThatClientsSee kills a migration to MongoDB and Redis several times, and lets the next migration
// finish. Afterwards, the assets, their records and the feed must be the same as before.
func TestMigrateKeepsAllThatClientsSee(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	old := api{"http://" + addr, "2.5"}
	registry := standalone(t, addr, dir, &processes.Output{})
	all, kept := append(createVaried(t, old, 80), old.liveLong(t)), old.keepFile(t)
	referred := old.refer(t, "broker", "lot-1", validAsset()).must(t, 201)
	grave := old.refer(t, "broker", "lot-2", validAsset()).must(t, 201)
	old.remove(t, "broker", text(grave.data()["id"]), text(at(grave.json["access"], "token"))).must(t, 204)
	records := old.records(t, all)
	redis, mongo := redistest.Start(t), mongotest.Start(t)
	stores := newStores(t, mongo, redis)
	migrate := []string{"migrate", "--from", "file:" + dir, "--to", stores.Assets, "--redis", stores.Tokens}
	mustRefuse(t, "in use", migrate...)
	feed := old.page(t, "?mode=_all_&limit=1000").entries
	expect.OK(t, registry.Stop())
	mustRun(t, "check", "--data", dir)
	killMigrations(t, migrate)
	// The last killed migration may have finished already.
	if text, err := command(t, migrate...); err != nil && !strings.Contains(text, "holds assets already") {
		t.Fatalf("%v: %s", err, text)
	}
	mustRefuse(t, "holds assets already", migrate...)

	moved := t.TempDir()
	secret, err := os.ReadFile(filepath.Join(dir, "secret"))
	expect.OK(t, errors.Join(err, os.WriteFile(filepath.Join(moved, "secret"), secret, 0o600)))
	expect.OK(t, os.CopyFS(filepath.Join(moved, "files"), os.DirFS(filepath.Join(dir, "files"))))
	now := api{split(t, moved, stores, &processes.Output{}).URL, "2.5"}
	kept.reads(t, now)
	same(t, "feed", now.page(t, "?mode=_all_&limit=1000").entries, feed)
	equal(t, "records after the migration", now.records(t, all), records)
	checkMigrated(t, now, all, feed[len(feed)-1].modified)
	again := now.refer(t, "broker", "lot-1", validAsset()).must(t, 200)
	equal(t, "the asset under a reference", text(again.data()["id"]), text(referred.data()["id"]))
	now.refer(t, "broker", "lot-2", validAsset()).fails(t, 410, "header/Registry-Reference").
		says(t, text(grave.data()["id"]))
	equal(t, "record of an asset that was changed since", now.record(t, all[0].id, "broker", all[0].token)[1:],
		records[all[0].id])
}

// createVaried creates assets: test and real ones, drafts and pending ones,
// changed and unchanged ones.
func createVaried(t *testing.T, a api, count int) (all []created) {
	t.Helper()
	for i := range count {
		f := validAsset()
		if i%5 == 0 {
			f = f.set("mode", "test")
		}
		c := a.create(t, f)
		if i%4 > 0 {
			c.answer = a.patch(t, c, fields{"status": "pending"}).must(t, 200)
		}
		if i%3 == 0 {
			c.answer = a.patch(t, c, fields{"description": "інший"}).must(t, 200)
		}
		all = append(all, c)
	}
	return all
}

// killMigrations starts a migration six times, and each time waits a little longer before it kills the migration.
func killMigrations(t *testing.T, args []string) {
	t.Helper()
	for i := range 6 {
		cmd := exec.Command(filepath.Join(bin, "registry"), args...)
		expect.OK(t, cmd.Start())
		time.Sleep(time.Duration(20+60*i) * time.Millisecond) // a different moment of the crash each time
		expect.OK(t, cmd.Process.Kill())
		_ = cmd.Wait() // an error if the kill ended the migration; nil if the migration ended before the kill
	}
}

// checkMigrated checks that the assets are as they were before the migration, and changes some of them. Each change
// must be later than the parameter `newest`, which is the last dateModified before the migration.
func checkMigrated(t *testing.T, a api, all []created, newest string) {
	t.Helper()
	for i, c := range all {
		equal(t, "asset "+c.id, a.read(t, c.id).must(t, 200).data(), c.data())
		if i%10 > 0 {
			continue
		}
		changed := a.patch(t, c, fields{"title": "після"}).must(t, 200).data()
		if got := text(changed["dateModified"]); got <= newest {
			t.Errorf("got dateModified %s for a change after the migration, want it after %s", got, newest)
		}
	}
	if c := a.create(t, validAsset()); c.data()["assetID"] == all[len(all)-1].data()["assetID"] {
		t.Errorf("got the assetID %v twice, want two", c.data()["assetID"])
	}
}

func TestMigrateRefusesBadStores(t *testing.T) {
	t.Parallel()
	redis, mongo := redistest.Start(t).URL(), mongotest.Start(t).URI(t, fmt.Sprintf("refuse%08x", randtest.Uint32()))
	empty := t.TempDir()
	mustRefuse(t, "no data directory", "migrate", "--from", "file:"+empty, "--to", mongo, "--redis", redis)
	mustRefuse(t, `--from must be "file:"`, "migrate", "--from", empty, "--to", mongo, "--redis", redis)
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	registry := standalone(t, addr, dir, &processes.Output{})
	expect.OK(t, registry.Stop())
	mustRefuse(t, "malformed", "migrate", "--from", "file:"+dir, "--to", "postgres://user:hunter2@host/db", "--redis",
		redis)
	if text, _ := command(t, "migrate", "--from", "file:"+dir, "--to",
		"mongodb://user:hunter2@127.0.0.1:1/db?serverSelectionTimeoutMS=500", "--redis",
		"redis://:hunter3@127.0.0.1:1"); strings.Contains(text, "hunter") {
		t.Errorf("got a password in %s, want none", text)
	}
}
