package file

import (
	"context"
	"errors"
	"strings"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

var admin = identity.Identity{Broker: "operator", KeyID: "k9", Role: identity.Administrator}

// TestRemoval takes a file down (docs/files.md, D8). All files with the same bytes must be gone, and these bytes
// must be refused afterwards.
func TestRemoval(t *testing.T) {
	b := newBench()
	var files []File
	for _, text := range []string{"content", "content", "other"} {
		f := b.stored(t, text)
		files = append(files, f)
	}
	for _, c := range []struct {
		name       string
		by         identity.Identity
		id, reason string
		want       fault.Kind
	}{
		{"a broker", broker, files[0].ID, "x", fault.Forbidden},
		{"no reason", admin, files[0].ID, "", fault.Invalid},
		{"blanks as reason", admin, files[0].ID, " \t\u00a0", fault.Invalid},
		{"a reason that nobody can read", admin, files[0].ID, "fake\xff", fault.Invalid},
		{"a long reason", admin, files[0].ID, strings.Repeat("x", 1001), fault.Invalid},
		{"no file", admin, strings.Repeat("0", 32), "x", fault.NotFound},
	} {
		if _, err := b.Remove(t.Context(), c.by, c.id, c.reason); fault.KindOf(err) != c.want {
			t.Errorf("%s: got %v, want kind %d", c.name, err, c.want)
		}
	}
	for _, reason := range []string{"a court has ordered it", "another reason"} {
		f, err := b.Remove(t.Context(), admin, files[0].ID, reason)
		if err != nil || f.Reason != "a court has ordered it" || f.RemovedBy != "k9" || f.SHA256 != files[0].SHA256 {
			t.Errorf("got %+v, %v, want it removed for the first reason", f, err)
		}
	}
	for _, f := range files[:2] {
		expect.FaultOf(t, fault.Gone, "a file with removed bytes")(b.Get(t.Context(), f.ID))
	}
	expect.Equal(t, len(b.memory.blobs), 1, "blobs")
	claim := Claim{MD5: files[0].MD5, Broker: broker.Broker}
	expect.FaultOf(t, fault.Invalid, "a document of a removed file")(b.Claim(t.Context(), files[0].ID, claim))
	expect.FaultOf(t, fault.Forbidden, "the same bytes again")(b.Add(t.Context(), broker, upload("content")))
	registered := expect.Get(b.Register(t.Context(), broker, files[0].MD5))(t)
	expect.FaultOf(t, fault.Forbidden, "the same bytes registered")(b.Upload(t.Context(), broker, registered.ID,
		upload("content")))
	expect.Equal(t, len(b.memory.blobs), 1, "blobs")
	if got, err := b.memory.Usage(t.Context(), broker.Broker); err != nil || got.Bytes != files[2].Size {
		t.Errorf("got %+v, %v, want the bytes of the other file", got, err)
	}
}

// TestARefusedUploadLeavesNothing uploads bytes that were removed, many times and in both ways, and lets the process
// die before and after each step of an upload. A day after the death, the stores must have what they had after the
// removal: the metadata and the note of the first file.
func TestARefusedUploadLeavesNothing(t *testing.T) {
	for n := 0; ; n++ { // the process dies at step n; it does not die at step 0
		b := newBench()
		f := b.stored(t, "content")
		must(t, f, errorOf(b.Remove(t.Context(), admin, f.ID, "x")))
		registered := b.register(t, "content")
		steps, dead := 0, errors.New("the process is dead")
		b.memory.step = func(string) error {
			switch steps += 2; {
			case n == 0 || steps < n:
				return nil
			case steps == n:
				return errLost // the process dies after this step
			}
			return dead
		}
		for range 2 {
			for _, err := range []error{errorOf(b.Add(t.Context(), broker, upload("content"))),
				errorOf(b.Upload(t.Context(), broker, registered.ID, upload("content")))} {
				if n == 0 && fault.KindOf(err) != fault.Forbidden || err == nil {
					t.Fatalf("step %d: got %v, want Forbidden or the death", n, err)
				}
			}
		}
		if now := b.memory.files[registered.ID]; n == 0 && (len(b.memory.files) != 2 || now.State != Registered) {
			t.Errorf("got %d files, and what was registered as %+v, want it and the removed file", len(b.memory.files), now)
		}
		b.memory.step = func(string) error { return nil }
		if n > 0 {
			b.clock = b.clock.Add(2 * keep)
			b.memory.reading.Complete = b.clock
			must(t, f, errorOf(b.Collect(t.Context())))
		}
		delete(b.memory.files, registered.ID)
		if m := b.memory; len(m.files) != 1 || m.files[f.ID].State != Removed || len(m.blobs) > 0 || len(m.removed) != 1 {
			t.Errorf("step %d: got %+v, the blobs %v and the notes %v, want those of one file", n, m.files, m.blobs, m.removed)
		}
		if n > steps {
			break
		}
	}
}

// TestAnUploadBesideARemoval runs a removal beside uploads of the same bytes, in orders of random seeds. No file may
// have these bytes afterwards. An upload that was refused leaves nothing, or what it had registered; one that succeeded
// is removed as any other file.
func TestAnUploadBesideARemoval(t *testing.T) {
	refused := 0
	for seed := range uint64(seeds) {
		w := newWorld(seed)
		free, bytes := w.memory.step, w.bytes
		w.memory.step, w.bytes = func(string) error { return nil }, w.memory // no actor waits yet
		f := expect.Get(w.Add(t.Context(), broker, upload("content")))(t)
		registered := w.register(t, "content")
		w.memory.step, w.bytes = free, bytes
		files := 0
		note := func(err error, added int) {
			switch {
			case err == nil:
				files += added
			case fault.KindOf(err) != fault.Forbidden && fault.KindOf(err) != fault.Gone:
				w.faults = append(w.faults, err.Error())
			default:
				refused++
			}
		}
		w.start(func() { note(errorOf(w.Remove(context.Background(), admin, f.ID, "x")), 0) })
		w.start(func() { w.pause(8); note(errorOf(w.Add(context.Background(), broker, upload("content"))), 1) })
		w.start(func() {
			w.pause(8)
			note(errorOf(w.Upload(context.Background(), broker, registered.ID, upload("content"))), 1)
		})
		w.run()
		if w.memory.files[registered.ID].State == Registered {
			delete(w.memory.files, registered.ID)
		}
		m := w.memory
		if len(m.files) != 1+files || len(m.removed) != 1+files || len(m.blobs) > 0 || len(w.faults) > 0 {
			t.Fatalf("seed %d: got %+v, %d notes, %d blobs and %v; want %d removed files", seed, m.files, len(m.removed),
				len(m.blobs), w.faults, 1+files)
		}
		for _, f := range m.files {
			expect.FatalIf(t, f.State != Removed, "seed %d: got %+v, want it removed", seed, f)
		}
	}
	expect.ErrorIf(t, refused == 0 || refused == 2*seeds, "got %d of %d uploads refused, want some", refused, 2*seeds)
}

// TestARemovalTakesNothingElse removes files while other files exist that must stay as they are: files without
// bytes, and files that the collector deletes or has just deleted.
func TestARemovalTakesNothingElse(t *testing.T) {
	b := newBench()
	waiting, other := b.register(t, "content"), b.register(t, "content")
	f, err := b.Remove(t.Context(), admin, waiting.ID, strings.Repeat("x", maxReason))
	if must(t, f, err).State != Removed || b.memory.files[other.ID].State != Registered {
		t.Errorf("without bytes: got %+v and %+v, want the first one removed", f, b.memory.files[other.ID])
	}

	b = newBench()
	var files []File
	for range 3 {
		files = append(files, b.stored(t, "content"))
	}
	files[1].State = Collected
	b.memory.files[files[1].ID] = files[1]
	removed := files[0].ID
	pages := 0
	b.memory.step = func(operation string) error {
		if operation == "page" {
			pages++
		}
		if operation == "get" && pages == 1 {
			delete(b.memory.files, files[2].ID) // by another process, after the page was read
		}
		return nil
	}
	must(t, f, errorOf(b.Remove(t.Context(), admin, removed, "x")))
	if got := b.memory.files; got[removed].State != Removed || got[files[1].ID].State != Collected || len(got) != 2 {
		t.Errorf("files that are collected: got %+v, want one removed and one collected", got)
	}
	expect.FaultOf(t, fault.NotFound, "a file that is collected")(b.Remove(t.Context(), admin, files[1].ID, "x"))
	if again, err := b.RemoveAgain(t.Context()); again != 0 || err != nil {
		t.Errorf("again: got %d files and %v, want none", again, err)
	}
	files[0].State = Collected // metadata were restored from a time when the file was collected
	b.memory.files[removed] = files[0]
	if again, err := b.RemoveAgain(t.Context()); again != 0 || err != nil || b.memory.files[removed].State != Collected {
		t.Errorf("a collected file: got %d files, %v and %+v, want it collected", again, err, b.memory.files[removed])
	}
	delete(b.memory.files, removed)
	b.memory.step = func(operation string) error {
		if operation == "create" {
			b.memory.files[removed] = f // by another process
		}
		return nil
	}
	if again, err := b.RemoveAgain(t.Context()); again != 0 || err != nil {
		t.Errorf("two processes at once: got %d files and %v, want none", again, err)
	}
}

// TestARemovalIsAppliedAgain makes a step of a removal fail. The file must be gone nevertheless, and the collector must
// delete the bytes and note the removal later.
func TestARemovalIsAppliedAgain(t *testing.T) {
	for _, step := range []string{"remove", "note removal"} {
		b := newBench()
		f := b.stored(t, "content")
		away := errors.New("away")
		b.memory.fails(step, away)
		expect.ErrOf(t, away, "%s", step)(b.Remove(t.Context(), admin, f.ID, "x"))
		b.memory.step = func(string) error { return nil }
		expect.FaultOf(t, fault.Gone, "%s", step)(b.Get(t.Context(), f.ID))
		if _, err := b.Collect(t.Context()); err != nil || len(b.memory.blobs) != 0 || len(b.memory.removed) != 1 {
			t.Errorf("%s: got %v, %d blobs and %d noted removals, want none and one", step, err, len(b.memory.blobs),
				len(b.memory.removed))
		}
		if stored, err := b.memory.Get(t.Context(), f.ID); err != nil || stored.State != Removed {
			t.Errorf("%s: got %+v, %v, want the removal kept", step, stored, err)
		}
	}
}

// TestRestoredMetadataBringNoRemovedFileBack restores metadata that were saved at several times before a
// removal. In one case it restores the bytes, too. RemoveAgain must remove the file again, with the reason that
// the removal had.
func TestRestoredMetadataBringNoRemovedFileBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		restore func(b *bench, registered, stored File, bytes kept)
	}{
		{"from before the file", func(b *bench, registered, _ File, _ kept) { delete(b.memory.files, registered.ID) }},
		{"from before the upload", func(b *bench, registered, _ File, _ kept) { b.memory.files[registered.ID] = registered }},
		{"from before the removal", func(b *bench, _, stored File, _ kept) { b.memory.files[stored.ID] = stored }},
		{"with the bytes", func(b *bench, _, stored File, bytes kept) {
			b.memory.files[stored.ID], b.memory.blobs[stored.Blob] = stored, bytes
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench()
			registered := b.register(t, "content")
			stored, err := b.Upload(t.Context(), broker, registered.ID, upload("content"))
			must(t, stored, err)
			bytes := b.memory.blobs[stored.Blob]
			_, err = b.Remove(t.Context(), admin, registered.ID, "a court has ordered it")
			must(t, err == nil, err)

			c.restore(b, registered, stored, bytes)
			for _, want := range []int{1, 0} {
				expect.Value(t, want, "")(b.RemoveAgain(t.Context()))
			}
			expect.FaultOf(t, fault.Gone, "")(b.Get(t.Context(), registered.ID))
			got := b.memory.files[registered.ID]
			if got.RemovedBy != "k9" || got.Reason != "a court has ordered it" || got.SHA256 != stored.SHA256 {
				t.Errorf("got %+v, want who has removed it, the reason and the SHA-256", got)
			}
			expect.FaultOf(t, fault.Forbidden, "the same bytes again")(b.Add(t.Context(), broker, upload("content")))
			expect.Equal(t, len(b.memory.blobs), 0, "blobs")
		})
	}
}

// TestOneFailureStopsNoOtherRemoval lets one step fail once while several files have to vanish: files with the same
// bytes, files whose removals are noted, and files whose bytes came back. All files except the one of the failure must
// vanish at once, and the next round must end the work.
func TestOneFailureStopsNoOtherRemoval(t *testing.T) {
	for _, c := range []struct {
		name, step string
		prepare    func(t *testing.T, b *bench, files []File)
		round      func(b *bench, files []File) error
	}{
		{"the same bytes", "replace", func(*testing.T, *bench, []File) {}, func(b *bench, files []File) error {
			return errorOf(b.Remove(t.Context(), admin, files[0].ID, "x"))
		}},
		{"noted removals", "replace", func(t *testing.T, b *bench, files []File) {
			must(t, files, errorOf(b.Remove(t.Context(), admin, files[0].ID, "x")))
			for _, f := range files {
				b.memory.files[f.ID], b.memory.blobs[f.Blob] = f, kept{text: []byte("content")}
			}
			b.Hold()
		}, func(b *bench, _ []File) error { return errorOf(b.RemoveAgain(t.Context())) }},
		{"noted removals, by the collector", "pass hour", func(_ *testing.T, b *bench, files []File) {
			for _, f := range files {
				f.State = Removed
				b.memory.removed[f.ID] = f
			}
		}, func(b *bench, _ []File) error { return errorOf(b.Collect(t.Context())) }},
		{"bytes that came back", "remove", func(t *testing.T, b *bench, files []File) {
			must(t, files, errorOf(b.Remove(t.Context(), admin, files[0].ID, "x")))
			for _, f := range files {
				b.memory.blobs[f.Blob] = kept{text: []byte("content")}
			}
		}, func(b *bench, _ []File) error { return errorOf(b.Collect(t.Context())) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench()
			var files []File
			for range 4 {
				files = append(files, b.stored(t, "content"))
			}
			c.prepare(t, b, files)
			failures := 0
			b.memory.step = func(operation string) error {
				if operation == c.step && (len(b.memory.blobs) < len(files) || c.step == "pass hour") {
					if failures++; failures == 1 {
						return errors.New("away")
					}
				}
				return nil
			}
			if err := c.round(b, files); err == nil || failures == 0 {
				t.Errorf("got %v and %d failures, want an error", err, failures)
			}
			if got := len(b.memory.blobs); got > 1 {
				t.Errorf("after the failure: got the bytes of %d files, want those of one at most", got)
			}
			must(t, files, c.round(b, files))
			if got := len(b.memory.blobs); got > 0 || b.IsHeld() {
				t.Errorf("after the next round: got the bytes of %d files, held: %t; want none", got, b.IsHeld())
			}
		})
	}
}
