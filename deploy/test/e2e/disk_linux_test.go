package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/mirrors"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/disktest"
	"asset-registry/shared/testing/expect"
)

// probes are the paths where a monitor asks whether the registry can store changes.
var probes = []string{"/api/2.5/health", "/readyz"}

// isSick checks that each probe answers 503, with Retry-After and the reason.
func isSick(t *testing.T, a api, why string) {
	t.Helper()
	for _, path := range probes {
		got := a.do(t, call{method: "GET", path: path}).must(t, 503)
		if got.header.Get("Retry-After") == "" || !strings.Contains(got.text, why) {
			t.Errorf("%s: got %s, want %q and Retry-After", path, got.text, why)
		}
	}
}

// recovers waits at most 20 s until each probe answers 200.
func recovers(t *testing.T, a api) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		well := 0
		for _, path := range probes {
			var body any
			if send(a, "GET", path, "", nil, &body) == 200 {
				well++
			}
		}
		switch {
		case well == len(probes):
			return
		case time.Now().After(end):
			t.Fatalf("got 200 from %d of %d probes after 20 s, want all", well, len(probes))
		}
	}
}

// TestAFullDiskRefusesWritesUntilThereIsRoom fills the disk twice, and crashes once.
// Every acknowledged asset must survive.
func TestAFullDiskRefusesWritesUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	dir := disktest.New(t, 24)
	addr, output := freeAddr(t), &processes.Output{}
	a := api{"http://" + addr, "2.5"}
	registry := standalone(t, addr, filepath.Join(dir, "data"), output)
	var stored []string
	var free func()
	create := func() int {
		asset := validAsset()
		asset["description"] = strings.Repeat("опис ", 10_000)
		var got struct{ Data struct{ ID string } }
		status := send(a, "POST", "/api/2.5/assets", "", data(asset), &got)
		if status == 201 {
			stored = append(stored, got.Data.ID)
		}
		return status
	}
	for range 2 {
		free = disktest.Fill(t, dir)
		status := 201
		for status == 201 {
			status = create()
		}
		expect.Equal(t, status, 503, "a creation on a full disk")
		isSick(t, a, "no space left on device")
		for _, id := range stored {
			a.read(t, id).must(t, 200)
		}
		a.page(t, "")
		free()
		recovers(t, a)
		expect.Equal(t, create(), 201, "a creation with room again")
	}
	expect.OK(t, registry.Kill())
	standalone(t, addr, filepath.Join(dir, "data"), output)
	for _, id := range stored {
		a.read(t, id).must(t, 200)
	}
	if strings.Contains(output.String(), "goroutine ") {
		t.Errorf("got a stack trace in the log, want none: %s", output)
	}
}

// TestAFullDiskUnderTokensStopsOwnersOnly puts the file tokens.db on a disk of its own, and fills this disk.
// Changes by owners must be refused with 503, but reads and creations must work.
func TestAFullDiskUnderTokensStopsOwnersOnly(t *testing.T) {
	t.Parallel()
	small, dir := disktest.New(t, 24), filepath.Join(t.TempDir(), "data")
	addr := freeAddr(t)
	a := api{"http://" + addr, "2.5"}
	expect.OK(t, standalone(t, addr, dir, &processes.Output{}).Stop())
	tokens, moved := filepath.Join(dir, "tokens.db"), filepath.Join(small, "tokens.db")
	text, err := os.ReadFile(tokens)
	expect.OK(t, errors.Join(err, os.WriteFile(moved, text, 0o600), os.Remove(tokens),
		os.Symlink(moved, tokens)))
	free := disktest.Fill(t, small) // fill the disk before the registry reserves room on it
	registry := expect.Get(processes.StartAny(t.Context(), addr, &processes.Output{}, filepath.Join(bin, "registry"),
		"serve", "--sandbox", "--no-limits", "--addr", addr, "--data", dir))(t)
	t.Cleanup(func() { registry.Kill() })
	var c created
	for refused := false; !refused; { // the first change of an asset writes to tokens.db
		c = a.create(t, validAsset())
		got := a.patch(t, c, fields{"description": "зміна"})
		if refused = got.status != 200; refused {
			got.must(t, 503)
		}
	}
	isSick(t, a, "tokens.db")
	a.read(t, c.id).must(t, 200)
	a.create(t, validAsset())
	free()
	recovers(t, a)
	a.patch(t, c, fields{"description": "зміна"}).must(t, 200)
}

// TestAFullDiskStopsNoReadingOfAMirror fills the disk of a mirror. The mirror must still serve its copy, also after
// a restart, and must report why it does not follow the registry. It must follow again when the disk has room.
// Promises: mirror-disk
func TestAFullDiskStopsNoReadingOfAMirror(t *testing.T) {
	t.Parallel()
	small, addrs := disktest.New(t, 24), []string{freeAddr(t), freeAddr(t)}
	origin, mirror := api{"http://" + addrs[0], "2.5"}, api{"http://" + addrs[1], "2.5"}
	standalone(t, addrs[0], filepath.Join(t.TempDir(), "data"), &processes.Output{})
	first := origin.publish(t, validAsset())
	front := mirrors.NewFront(origin.base, mirror.base)
	output := &processes.Output{}
	var running *processes.Process
	start := func() {
		running = startMirror(t, addrs[1], origin.base, filepath.Join(small, "mirror"), output, "--snapshot-interval", "0")
	}
	start()
	expect.OK(t, front.AwaitMirror(t.Context()))
	free := disktest.Fill(t, small)
	const reason = `"fault":"The copy cannot be stored: no space left on device."`
	saysSo := func() bool {
		got := mirror.do(t, call{method: "GET", path: "/readyz"})
		return got.status == 200 && strings.Contains(got.text, reason)
	}
	soon(t, "/readyz tells of the full disk", time.Minute, func() bool {
		origin.publish(t, validAsset().set("description", strings.Repeat("опис ", 10_000)))
		return saysSo()
	})
	await(t, output, "no space left on device")
	isOld := func() {
		t.Helper()
		got := mirror.read(t, first.id).must(t, 200)
		equal(t, "the first asset", got.text, origin.read(t, first.id).text)
		equal(t, "the first page of one", mirror.page(t, "?limit=1").text,
			strings.ReplaceAll(origin.page(t, "?limit=1").text, addrs[0], addrs[1]))
	}
	isOld()
	expect.OK(t, running.Kill())
	start()
	isOld()
	soon(t, "/readyz tells of the full disk again", time.Minute, saysSo)
	free()
	soon(t, "the mirror has all, and tells of no fault", time.Minute, func() bool {
		all := strings.ReplaceAll(origin.page(t, "?limit=1000").text, addrs[0], addrs[1])
		return mirror.page(t, "?limit=1000").text == all && !saysSo()
	})
	isOld()
}
