package file

import (
	"testing"
	"time"
)

func TestCollection(t *testing.T) {
	for _, c := range []struct {
		name  string
		uses  func(t *testing.T, b *bench, f File)
		after time.Duration // of the beginning of the last reading
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

// TestAClockThatWasWrongKeepsNoFileForEver touches a file by a clock that is a year ahead.
func TestAClockThatWasWrongKeepsNoFileForEver(t *testing.T) {
	b := newBench()
	b.clock = start.Add(365 * 24 * time.Hour)
	f := b.register(t, "content")
	for n, c := range []struct {
		at    time.Duration
		files int
	}{{0, 0}, {keep - time.Minute, 0}, {keep, 1}} {
		b.clock = start.Add(c.at)
		b.memory.reading.Complete = b.clock
		done, err := b.Collect(t.Context())
		if must(t, done, err).Files != c.files {
			t.Errorf("run %d: got %+v, want %d collected", n, done, c.files)
		}
	}
	if _, known := b.memory.files[f.ID]; known {
		t.Error("a day after the first run by the right clock: got the file, want it collected")
	}
}

// TestACollectionGoesOn ends runs of the collector after each of their steps.
func TestACollectionGoesOn(t *testing.T) {
	b := newBench()
	f := b.register(t, "content")
	must(t, f, errorOf(b.Upload(t.Context(), broker, f.ID, upload("content"))))
	b.clock = start.Add(2 * keep)
	b.memory.reading.Complete = b.clock
	for _, failing := range []string{"remove", "delete"} {
		b.memory.step = func(operation string) error {
			if operation == failing {
				return errLost
			}
			return nil
		}
		if _, err := b.Collect(t.Context()); err == nil {
			t.Errorf("%s: got no error, want one", failing)
		}
		if _, err := b.Claim(t.Context(), f.ID, Claim{f.MD5, broker.Broker, true}); err == nil {
			t.Errorf("%s: got a claim of a collected file, want an error", failing)
		}
	}
	b.memory.step = func(string) error { return nil }
	if done, err := b.Collect(t.Context()); err != nil || done.Files != 1 || len(b.memory.files)+len(b.memory.blobs) > 0 {
		t.Errorf("got %+v, %v, %d files and %d blobs, want all gone", done, err, len(b.memory.files), len(b.memory.blobs))
	}
}
