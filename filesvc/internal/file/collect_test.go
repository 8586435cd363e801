package file

import (
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

func TestCollection(t *testing.T) {
	for _, c := range []struct {
		name  string
		uses  func(t *testing.T, b *bench, f File)
		after time.Duration // time between start and the beginning of the last reading
		isOff bool
	}{
		{"nobody uses it", func(*testing.T, *bench, File) {}, keep, true},
		{"it was read too early", func(*testing.T, *bench, File) {}, keep - time.Millisecond, false},
		{"a document names it", func(t *testing.T, b *bench, f File) { must(t, f, b.Name(t.Context(), f.ID, false)) }, keep, false},
		{"it was claimed an hour later", func(t *testing.T, b *bench, f File) {
			b.clock = b.clock.Add(time.Hour)
			must(t, f, errorOf(b.Claim(t.Context(), f.ID, Claim{f.MD5, broker.Broker, false})))
		}, keep, false},
		{"it was uploaded and not named", func(t *testing.T, b *bench, f File) {
			must(t, f, errorOf(b.Upload(t.Context(), broker, f.ID, upload("content"))))
		}, keep, true},
	} {
		b := newBench()
		f := b.register(t, "content")
		c.uses(t, b, f)
		b.clock = start.Add(2 * keep)
		b.memory.reading.Complete = start.Add(c.after)
		done, err := b.Collect(t.Context())
		if must(t, done, err).Files > 0 != c.isOff {
			t.Errorf("%s: got %+v, want collected: %t", c.name, done, c.isOff)
		}
		if _, known := b.memory.files[f.ID]; known == c.isOff || c.isOff && len(b.memory.blobs) > 0 {
			t.Errorf("%s: got file: %t and %d blobs, want collected: %t", c.name, known, len(b.memory.blobs), c.isOff)
		}
	}
}

// TestACollectionGoesOn makes a run of the collector fail after each of its steps. The next run must continue.
func TestACollectionGoesOn(t *testing.T) {
	b := newBench()
	f := b.register(t, "content")
	must(t, f, errorOf(b.Upload(t.Context(), broker, f.ID, upload("content"))))
	b.clock = start.Add(2 * keep)
	b.memory.reading.Complete = b.clock
	for _, failing := range []string{"remove", "delete"} {
		b.memory.fails(failing, errLost)
		expect.FailsOf(t, "%s", failing)(b.Collect(t.Context()))
		expect.FailsOf(t, "%s", failing)(b.Claim(t.Context(), f.ID, Claim{f.MD5, broker.Broker, true}))
	}
	b.memory.step = func(string) error { return nil }
	if done, err := b.Collect(t.Context()); err != nil || done.Files != 1 || len(b.memory.files)+len(b.memory.blobs) > 0 {
		t.Errorf("got %+v, %v, %d files and %d blobs, want all gone", done, err, len(b.memory.files), len(b.memory.blobs))
	}
}

// TestTheSweepTakesWhatUploadsLeft has bytes that a file names, that a file may still name, and that no file will
// name. Only the bytes that no file will name may be removed.
func TestTheSweepTakesWhatUploadsLeft(t *testing.T) {
	id := strings.Repeat("a", 32)
	const blob, other = "-0123456789abcdef", "-1123456789abcdef"
	waiting := File{ID: id, State: Registered, Named: true, Revision: 1}
	stored := File{ID: id, State: Stored, Named: true, Revision: 1, Blob: id + other, Small: id + blob}
	removed, again := stored, stored
	removed.State, again.Small = Removed, ""
	for _, c := range []struct {
		name  string
		file  File // the file of the bytes; without an id, the bytes have no file
		age   time.Duration
		swept bool
		notes int64 // File.Swept after the run
	}{
		{"an upload under way", waiting, keep - time.Minute, false, 0},
		{"just a day", waiting, keep, false, 0},
		{"an upload that never ended", waiting, keep + time.Millisecond, true, 1},
		{"the file has its bytes from another upload", again, 2 * keep, true, 1},
		{"the file names it", stored, 2 * keep, false, 0},
		{"the file was removed", removed, 2 * keep, true, 0},
		{"there is no file", File{}, 2 * keep, true, 0},
		{"there is no file, and it is young", File{}, time.Hour, false, 0},
	} {
		b := newBench()
		if c.file.ID != "" {
			b.memory.files[id] = c.file
		}
		b.memory.blobs[id+blob] = kept{at: start}
		b.clock = start.Add(c.age)
		done, err := b.Collect(t.Context())
		_, left := b.memory.blobs[id+blob]
		if err != nil || left == c.swept || (done.Blobs == 1) != (c.swept && c.file.State != Removed) {
			t.Errorf("%s: got %+v, %v and the bytes: %t, want swept: %t", c.name, done, err, left, c.swept)
		}
		expect.Equal(t, b.memory.files[id].Swept, c.notes, "%s, notes of it in the file", c.name)
	}
}

// TestAClockSweepsNoUpload sets the clock between the end of the bytes of an upload and a run of the collector. The bytes
// must stay for an hour that nobody sets, and then go if no file names them.
func TestAClockSweepsNoUpload(t *testing.T) {
	const year = 365 * keep
	for _, ahead := range []time.Duration{-10 * year, -keep, -time.Minute, time.Minute, keep + 1, 10 * year} {
		b := newBench()
		b.hour = time.Hour
		name := strings.Repeat("a", 32) + "-0123456789abcdef"
		b.memory.blobs[name] = kept{at: start}
		b.clock = start.Add(ahead)
		for _, c := range []struct {
			passed time.Duration
			left   bool
		}{{0, true}, {time.Hour - 1, true}, {time.Hour, ahead <= keep}} {
			_, err := b.Service.Collect(t.Context(), func() time.Duration { return c.passed })
			if _, left := b.memory.blobs[name]; err != nil || left != c.left {
				t.Errorf("a clock %v ahead, after %v: got the bytes: %t, %v; want %t", ahead, c.passed, left, err, c.left)
			}
		}
		b.clock = start.Add(2 * keep)
		expect.Get(b.Service.Collect(t.Context(), func() time.Duration { return 3 * time.Hour }))(t)
		if _, err := b.Service.Collect(t.Context(), func() time.Duration { return 4 * time.Hour }); err != nil || len(b.memory.blobs) > 0 {
			t.Errorf("a clock %v ahead, when it is right: got %d blobs, %v; want none", ahead, len(b.memory.blobs), err)
		}
	}
}

// TestAFileThatOthersChangeIsNotCollected changes files after the collector has read them and before it changes
// them. The collector must leave them as they are.
func TestAFileThatOthersChangeIsNotCollected(t *testing.T) {
	b := newBench()
	unused := b.register(t, "unused")
	left := b.add(t, "left", false)
	b.memory.blobs[left.ID+"-0123456789abcdef"] = kept{at: start}
	if _, err := b.Collect(t.Context()); err != nil { // the collector sees the files
		t.Fatal(err)
	}
	b.clock = start.Add(2 * keep)
	b.memory.reading.Complete = b.clock
	b.memory.step = func(operation string) error {
		if operation == "replace" {
			for id, f := range b.memory.files {
				f.Revision++
				b.memory.files[id] = f
			}
		}
		return nil
	}
	if done, err := b.Collect(t.Context()); err != nil || done.Files+done.Blobs != 0 || len(b.memory.files) != 2 {
		t.Errorf("got %+v, %v and %d files; want nothing collected of 2 files", done, err, len(b.memory.files))
	}
	if b.memory.files[unused.ID].State != Registered || len(b.memory.blobs) != 2 {
		t.Errorf("got %+v and %d blobs, want what others have stored", b.memory.files, len(b.memory.blobs))
	}
}
