package copier

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestFilesOfDocumentsAreCopied checks that the copier copies the files that documents name, and requests
// nothing else.
func TestFilesOfDocumentsAreCopied(t *testing.T) {
	r := newRig(t)
	r.serve("/get/"+id(1), func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "" || q.Header.Get("User-Agent") != "test" {
			t.Errorf("got the headers %v, want no key", q.Header)
		}
		w.Header().Set("Content-Type", "application/pdf")
		w.Header().Set("Content-Disposition", `inline; filename="_.pdf"; filename*=UTF-8''..%2F..%2F%D0%90.pdf`)
		io.WriteString(w, "%PDF-1.4\n")
	})
	r.serveText(2, "")
	r.serveText(3, strings.Repeat("large", 50_000))
	with := func(change func(d map[string]any)) any {
		d := document(9, "x")
		change(d)
		return d
	}
	r.assets.put(1, document(1, "%PDF-1.4\n"), document(2, ""), document(1, "%PDF-1.4\n"))
	r.assets.put(2, document(3, strings.Repeat("large", 50_000)), document(1, "%PDF-1.4\n"),
		with(func(d map[string]any) { delete(d, "sha256") }),
		with(func(d map[string]any) { d["sha256"] = "" }),
		with(func(d map[string]any) { d["sha256"] = strings.Repeat("A", 64) }),
		with(func(d map[string]any) { d["sha256"] = "../../x" }),
		with(func(d map[string]any) { d["size"] = 1<<20 + 1 }),
		with(func(d map[string]any) { d["size"] = -1 }),
		with(func(d map[string]any) { d["url"] = "https://registry.example/get/.." }),
		with(func(d map[string]any) { d["url"] = "https://registry.example/get/../../" + id(9) + "/.." }),
		with(func(d map[string]any) { d["url"] = "https://registry.example/get/" + strings.ToUpper(id(10)) }),
		with(func(d map[string]any) { d["url"] = "https://registry.example/get/removed" }),
	)
	r.assets.putText(3, `{"documents":["sha256"]}`)
	r.assets.putText(4, `"sha256`)
	r.mustCatchUp()
	r.has(1, "%PDF-1.4\n")
	r.has(2, "")
	r.has(3, strings.Repeat("large", 50_000))
	r.lacks(9, fault.NotFound)
	if f := r.stored(1); f.Title != "А.pdf" || f.Declared != "application/pdf" || f.Detected != "application/pdf" ||
		f.Blob != id(1)+"-"+sum("%PDF-1.4\n")[:16] {
		t.Errorf("got %+v, want the name and the types", f)
	}
	r.mustCatchUp()
	r.reopen()
	r.mustCatchUp()
	r.has(3, strings.Repeat("large", 50_000))
	for path, n := range r.asked {
		expect.ErrorIf(t, path != "/get/removed" && n != 1, "%s was asked for %d times, want 1", path, n)
	}
	expect.ErrorIf(t, len(r.asked) != 4, "got requests for %v, want three files and the removals", r.asked)
	if got := r.Counts.Refused.Load(); got == 0 {
		t.Error("got no refused asset, want those that are none")
	}
}

// TestALyingUpstream copies a file from upstreams that answer with something else. None of the answers may be
// stored.
func TestALyingUpstream(t *testing.T) {
	const text = "the true bytes"
	for name, lie := range map[string]http.HandlerFunc{
		"other bytes":   has("the fake bytes"),
		"fewer bytes":   has(text[1:]),
		"one byte more": has(text + "."),
		"no bytes":      has(""),
		"a page":        has("<html>"),
		"bytes without end": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, strings.Repeat(text, 1000)); err != nil {
					return
				}
			}
		},
		"fewer bytes without a length": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, text[1:])
			w.(http.Flusher).Flush()
		},
		"another length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(1<<40))
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		},
		"a broken connection": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			io.WriteString(w, text[:4])
			panic(http.ErrAbortHandler)
		},
		"nothing": func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() },
		"half": func(w http.ResponseWriter, q *http.Request) {
			io.WriteString(w, text[:4])
			w.(http.Flusher).Flush()
			<-q.Context().Done()
		},
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, text)
			z.Close()
		},
		"called compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, text)
		},
		"a redirect": http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP,
		"none":       http.NotFound,
		"removed":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
		"a part": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			io.WriteString(w, text)
		},
		"no content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.serve("/elsewhere", has(text))
			r.serve("/get/"+id(1), lie)
			r.serveText(2, "another")
			r.assets.put(1, document(1, text), document(2, "another"))
			if err := r.CatchUp(t.Context()); err == nil || !strings.Contains(err.Error(), id(1)) {
				t.Errorf("got %v, want an error that names the file", err)
			}
			r.lacks(1, fault.Unavailable)
			r.has(2, "another")
			if got := r.blobs(); len(got) != 1 {
				t.Errorf("got the bytes %q, want only the other file's bytes", got)
			}
			if got := r.requests("/get/" + id(1)); got < 1+retries { // net/http repeats some requests by itself
				t.Errorf("got %d requests, want %d", got, 1+retries)
			}
			expect.ErrorIf(t, r.requests("/elsewhere") > 0, "a redirect was followed")
			r.serveText(1, text)
			r.mustCatchUp()
			r.has(1, text)
		})
	}
}

// TestABusyUpstream has an upstream that answers 429 at first. The file must be copied nevertheless, after pauses of a
// second. Afterwards the removals are read once in each interval.
func TestABusyUpstream(t *testing.T) {
	r := newRig(t)
	r.serve("/get/"+id(1), func(w http.ResponseWriter, _ *http.Request) {
		if r.requests("/get/"+id(1)) < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, "x")
	})
	r.assets.put(1, document(1, "x"))
	begun := time.Now()
	r.mustCatchUp()
	r.has(1, "x")
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("got the file after %v, want 2 pauses of 1s", took)
	}
	begun, before := time.Now(), r.requests("/get/removed")
	end := r.run()
	time.Sleep(10 * r.Every)
	end()
	got, most := r.requests("/get/removed")-before, int(time.Since(begun)/r.Every)+1
	expect.ErrorIf(t, got < 1 || got > most, "got %d readings of the removals, want from 1 to %d", got, most)
}

// TestAFileThatNoAssetNamesIsNotServed changes assets until none of them names a file any longer. The file must
// then be neither served nor kept, until an asset names it again.
func TestAFileThatNoAssetNamesIsNotServed(t *testing.T) {
	r := newRig(t)
	r.serveText(1, "x")
	r.assets.put(1, document(1, "x"))
	r.assets.put(2, document(1, "x"))
	r.mustCatchUp()
	r.assets.put(1)
	r.has(1, "x")
	r.assets.put(2, document(1, "y"))
	r.lacks(1, fault.NotFound)
	r.assets.put(2)
	r.lacks(1, fault.NotFound)
	r.mustCatchUp()
	if got := r.blobs(); len(got) != 0 {
		t.Errorf("got the bytes %q, want none", got)
	}
	r.lacks(1, fault.NotFound)
	r.assets.put(1, document(1, "x"))
	r.mustCatchUp()
	r.has(1, "x")
}

// TestDocumentsThatContradictEachOther has two documents that name one file with different hashes. The first one
// must count for as long as its asset names the file.
func TestDocumentsThatContradictEachOther(t *testing.T) {
	r := newRig(t)
	r.serveText(1, "x")
	r.assets.put(1, document(1, "x"))
	r.mustCatchUp()
	r.serveText(1, "y")
	r.assets.put(2, document(1, "y"))
	r.mustCatchUp()
	r.has(1, "x")
	expect.Equal(t, r.Counts.Refused.Load(), 1, "refused documents")
	r.assets.put(1) // now only the second document names the file
	r.reopen()
	r.mustCatchUp()
	r.has(1, "y")
	if got := r.blobs(); len(got) != 1 {
		t.Errorf("got the bytes %q, want the bytes of one file", got)
	}
}

// TestWhatAKilledProcessLeaves has the remains of a process that was killed between two steps. The next process
// must copy the missing files, apply the removal, and leave no other bytes.
func TestWhatAKilledProcessLeaves(t *testing.T) {
	r := newRig(t)
	for n := range 3 {
		r.serveText(n, "x")
		r.assets.put(n, document(n, "x"))
	}
	for n := range 2 { // bytes without metadata
		expect.OK(t, r.Bytes.Put(t.Context(), id(n)+"-"+sum("x")[:16], strings.NewReader("x")))
	}
	half := filepath.Join(r.dir, "files", "new", id(2)+"-"+sum("x")[:16])
	expect.OK(t, os.WriteFile(half, []byte("?"), 0o600))
	if err := r.Bytes.NoteRemoval(t.Context(), file.File{ID: id(1), State: file.Removed}); err != nil { // not applied
		t.Fatal(err)
	}
	r.mustCatchUp()
	r.has(0, "x")
	r.lacks(1, fault.Gone)
	r.has(2, "x")
	if got := r.blobs(); len(got) != 2 {
		t.Errorf("got the bytes %q, want the bytes of two files", got)
	}
}

// TestRunFollows checks that Run copies new files and applies new removals, and that it ends when its context
// does.
func TestRunFollows(t *testing.T) {
	r := newRig(t)
	r.serveText(1, "x")
	r.assets.put(1, document(1, "x"))
	r.assets.put(5, document(5, "late")) // the upstream gets the bytes of this file later
	end := r.run()
	await(t, "the first file", func() bool { _, err := r.text(1); return err == nil })
	await(t, "a file whose bytes come late is known", func() bool {
		_, err := r.text(5)
		return fault.KindOf(err) == fault.Unavailable
	})
	r.serveText(2, "y")
	r.assets.put(2, document(2, "y"))
	r.serveText(5, "late")
	await(t, "files that come later", func() bool {
		_, err1 := r.text(2)
		_, err2 := r.text(5)
		return err1 == nil && err2 == nil
	})
	await(t, "no file is missing", func() bool { return r.Missing() == 0 })
	r.remove(id(1))
	await(t, "the removal", func() bool { _, err := r.text(1); return fault.KindOf(err) == fault.Gone })
	end()
	r.has(2, "y")
	if got := r.Unread(); got < 0 {
		t.Errorf("got %v since the removals were read, want a time", got)
	}
}

// TestAnotherStartWritesNothing starts a copier again after it has copied all files. The copier reads all assets
// again, but it must not change the store.
func TestAnotherStartWritesNothing(t *testing.T) {
	r := newRig(t)
	r.serveText(1, "x")
	for n := range 40 { // assets with similar ids
		r.assets.put(n, document(1, "x"))
	}
	r.mustCatchUp()
	r.reopen()
	before := expect.Get(os.ReadFile(filepath.Join(r.dir, "files.db")))(t)
	r.mustCatchUp()
	after, err := os.ReadFile(filepath.Join(r.dir, "files.db"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the metadata have changed (%v), want them as they were", err)
	}
	r.has(1, "x")
}
