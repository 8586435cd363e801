package file

import (
	"fmt"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestAFileOfAThousandAssets has a thousand assets that name one file before its bytes arrive. The documents of
// each asset must be completed exactly once.
func TestAFileOfAThousandAssets(t *testing.T) {
	const assets = 1000
	b := newBench()
	f := b.register(t, "content")
	var named page1
	for n := range assets {
		named = append(named, Named{Naming{f.ID, fmt.Sprintf("%032x", n)}, false, false})
	}
	documents := &completions{}
	follower := Follower{Service: b.Service, Awaited: b.memory, Documents: documents, Feed: named}
	must(t, f, follower.Read(t.Context()))
	must(t, f, follower.complete(t.Context()))
	expect.Equal(t, len(documents.done), 0, "documents completed before the bytes")
	must(t, f, errorOf(b.Upload(t.Context(), broker, f.ID, upload("content"))))
	for range 2 {
		must(t, f, follower.complete(t.Context()))
	}
	once := map[string]bool{}
	for _, document := range documents.done {
		once[document] = true
	}
	if len(once) != assets || len(documents.done) != assets {
		t.Errorf("got %d documents completed, %d of them once, want %d", len(documents.done), len(once), assets)
	}
}

// TestTenThousandFiles removes a file, and runs the collector, among ten thousand files. Files with the same
// bytes, unused files and additional blobs must go, and all others must stay.
func TestTenThousandFiles(t *testing.T) {
	// Of every 1000 files (the constant `rare`), one has the bytes of the removed file, one is not named, and one
	// has an additional blob.
	const count, rare = 10_000, 1000
	b := newBench()
	var same []string
	for n := range count {
		f := File{ID: fmt.Sprintf("%032x", n), Broker: broker.Broker, State: Stored, Touched: start, Revision: 2, Size: 1}
		f.Named, f.SHA256, f.Blob = n%rare != 1, "common", f.ID+"-0000000000000000"
		if n%rare == 0 {
			f.SHA256 = "rare"
			same = append(same, f.ID)
		}
		b.memory.files[f.ID] = f
		b.memory.blobs[f.Blob] = kept{[]byte("x"), start}
		if n%rare == 2 {
			b.memory.blobs[f.ID+"-1111111111111111"] = kept{[]byte("half"), start} // of an unfinished upload
		}
	}
	expect.Get(b.Remove(t.Context(), admin, same[3], "a court has ordered it"))(t)
	for _, id := range same {
		if f, err := b.find(t.Context(), id); err != nil || f.State != Removed {
			t.Errorf("a file with the same bytes: got %q, %v, want it removed", f.State, err)
		}
	}
	b.clock = start.Add(2 * keep)
	b.memory.reading.Complete = b.clock
	done, err := b.Collect(t.Context())
	const few = count / rare
	if want := (Collection{Files: few, Bytes: few, Blobs: few, Kept: count - 2*few}); must(t, done, err) != want {
		t.Errorf("got %+v collected, want %+v", done, want)
	}
	if got := len(b.memory.blobs); got != count-2*few {
		t.Errorf("got %d blobs, want one for each of the %d files that are left", got, count-2*few)
	}
}
