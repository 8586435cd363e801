package copier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestRemovalsAreApplied removes files before and after they are copied, a file that is too large to be copied, and a
// file that no asset names. All of them except the last one must stay removed, even when the registry has lost its
// removals. The copy must not note the removal of the last one.
func TestRemovalsAreApplied(t *testing.T) {
	r := newRig(t)
	for n := range 5 {
		r.serveText(n, fmt.Sprint(n))
		r.assets.put(n, document(n, fmt.Sprint(n)))
	}
	tooLarge := document(76, "x")
	tooLarge["size"] = 1<<20 + 1
	r.assets.put(76, tooLarge)
	r.serve("/get/"+id(0), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	r.remove(id(0))
	r.mustCatchUp()
	r.lacks(0, fault.Gone)
	r.remove(id(1), id(2), id(3), id(76), id(77))
	r.mustCatchUp()
	for _, n := range []int{0, 1, 2, 3, 76} {
		r.lacks(n, fault.Gone)
	}
	r.lacks(77, fault.NotFound)
	r.has(4, "4")
	if got := r.blobs(); len(got) != 1 {
		t.Errorf("got the bytes %q, want the bytes of one file", got)
	}
	if removed, refused := r.Counts.Removed.Load(), r.Counts.Refused.Load(); removed != 5 || refused != 0 {
		t.Errorf("got %d removals and %d refused answers, want 5 and 0", removed, refused)
	}
	want := []string{id(0), id(1), id(2), id(3), id(76)}
	r.mustList(want...)
	r.removed = nil // the registry has lost its removals
	r.assets.put(0, document(0, "0"))
	r.reopen()
	asked := r.requests("/get/" + id(0))
	r.mustCatchUp()
	r.lacks(0, fault.Gone)
	if got := r.requests("/get/" + id(0)); got != asked {
		t.Errorf("got %d more requests for a removed file, want none", got-asked)
	}
	expect.Equal(t, r.Counts.Removed.Load(), 0, "new removals")
	r.mustList(want...)
}

// TestAListThatCannotBeFinishedIsApplied has lists of removals whose first pages are sound, and whose last page never
// comes as it should. In each round, every removal of the sound pages must be applied, and nothing of the last one. The
// removals must not count as read.
func TestAListThatCannotBeFinishedIsApplied(t *testing.T) {
	const sound = `{"data":[{"id":"%s"},{"id":"%s"}],"next_page":{}}`
	for name, last := range map[string]http.HandlerFunc{
		"a failure":              func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"no order":               has(`{"data":[{"id":"` + id(9) + `"},{"id":"` + id(8) + `"}]}`),
		"an id of a page before": has(`{"data":[{"id":"` + id(1) + `"},{"id":"` + id(9) + `"}]}`),
		"half a page":            has(`{"data":[{"id":"` + id(9) + `"}`),
		"no ids":                 has(`{"data":[{"id":"` + id(9) + `"},{"id":"x"}]}`),
		"a broken connection": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"data":[{"id":"`+id(9)+`"}]`)
		},
		"nothing": func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for _, n := range []int{1, 2, 3, 9} {
				r.serveText(n, "x")
				r.assets.put(n, document(n, "x"))
			}
			r.mustCatchUp()
			before := r.known.Load()
			for round, removed := range []int{1, 3} { // the registry removes files 1 and 2, and then file 3
				r.serve("/get/removed", func(w http.ResponseWriter, q *http.Request) {
					if q.URL.Query().Get("after") == "" {
						fmt.Fprintf(w, sound, id(removed), id(removed+1))
						return
					}
					last(w, q)
				})
				expect.Fails(t, r.readRemovals(t.Context()), "round %d", round)
				r.lacks(removed, fault.Gone)
			}
			r.lacks(2, fault.Gone)
			r.has(9, "x")
			expect.ErrorIf(t, r.known.Load() != before, "the removals count as read")
			if got := r.blobs(); len(got) != 1 {
				t.Errorf("got the bytes %q, want the bytes of one file", got)
			}
			r.mustList(id(1), id(2), id(3)) // a mirror of this mirror sees them at once
		})
	}
}

// unnoted is a store of bytes that cannot note the removal of one file.
type unnoted struct {
	file.Bytes
	id string
}

func (u unnoted) NoteRemoval(ctx context.Context, f file.File) error {
	if f.ID == u.id {
		return errors.New("the disk has a bad block here")
	}
	return u.Bytes.NoteRemoval(ctx, f)
}

// TestOneRemovalThatFailsStopsNoOther has a removal that cannot be noted. The removals after it must be applied in the
// same round, and this one as soon as that works.
func TestOneRemovalThatFailsStopsNoOther(t *testing.T) {
	r := newRig(t)
	for n := range 3 {
		r.serveText(n, "x")
		r.assets.put(n, document(n, "x"))
	}
	r.mustCatchUp()
	sound := r.Bytes
	r.Bytes = unnoted{sound, id(0)}
	before := r.known.Load()
	r.remove(id(0), id(1), id(2))
	if err := r.readRemovals(t.Context()); err == nil || r.known.Load() != before {
		t.Errorf("got %v, and the removals count as read: %t; want an error and false", err, r.known.Load() != before)
	}
	r.has(0, "x")
	r.lacks(1, fault.Gone)
	r.lacks(2, fault.Gone)
	r.Bytes = sound
	if err := r.readRemovals(t.Context()); err != nil || r.known.Load() == before {
		t.Errorf("got %v, want the removals read", err)
	}
	r.lacks(0, fault.Gone)
}

// TestRemovalsWaitForNothing starts a copier beside a damaged note of a removal, so that its start cannot end. Removals
// must be applied nevertheless, the one that a killed process has noted and those of the list. Files that no asset names
// must be swept away.
func TestRemovalsWaitForNothing(t *testing.T) {
	r := newRig(t)
	for n := range 4 {
		r.serveText(n, "x")
		r.assets.put(n, document(n, "x"))
	}
	r.mustCatchUp()
	if err := r.Bytes.NoteRemoval(t.Context(), file.File{ID: id(1), State: file.Removed}); err != nil { // not applied
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "files", "removed", id(0)), []byte("{}"), 0o600); err != nil { // damaged
		t.Fatal(err)
	}
	r.assets.put(3)
	r.reopen()
	r.remove(id(2))
	end := r.run()
	await(t, "the removals", func() bool {
		_, err1 := r.text(1)
		_, err2 := r.text(2)
		return fault.KindOf(err1) == fault.Gone && fault.KindOf(err2) == fault.Gone
	})
	await(t, "the sweep", func() bool { return len(r.blobs()) == 1 })
	end()
	r.has(0, "x")
}

// TestLyingRemovals reads lists of removals that no registry would send. No page of them may be applied.
func TestLyingRemovals(t *testing.T) {
	const rest = `"},{"id":"`
	r := newRig(t)
	r.serveText(1, "x")
	r.assets.put(1, document(1, "x"))
	r.mustCatchUp()
	pages := 0
	for name, lie := range map[string]http.HandlerFunc{
		"paths":    has(`{"data":[{"id":"` + id(1) + rest + `../../../etc/passwd"}]}`),
		"no order": has(`{"data":[{"id":"` + id(1) + rest + id(0) + `"}]}`),
		"twice":    has(`{"data":[{"id":"` + id(1) + rest + id(1) + `"}]}`),
		"capitals": has(`{"data":[{"id":"` + id(1) + rest + strings.Repeat("A", 32) + `"}]}`),
		"no JSON":  has(`{"data":[{"id":"` + id(1) + `"}`),
		"no list":  has(`{}`),
		"null":     has(`null`),
		"another type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, `{"data":[]}`)
		},
		"another status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
			io.WriteString(w, `{"data":[]}`)
		},
		"too many bytes": has(`{"data":[` + strings.Repeat(" ", maxPage) + `]}`),
		"a long page": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"data":[{"id":"`+id(1)+`"}`)
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		},
		"the same page again": func(w http.ResponseWriter, _ *http.Request) {
			if pages++; pages > 100 {
				t.Error("got more than 100 requests, want an end")
			}
			io.WriteString(w, `{"data":[{"id":"`+id(50)+`"}],"next_page":{}}`)
		},
		"nothing": func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() },
	} {
		r.serve("/get/removed", lie)
		before := r.known.Load()
		expect.Fails(t, r.readRemovals(t.Context()), "%s", name)
		expect.ErrorIf(t, r.known.Load() != before, "%s: the removals count as read", name)
		r.has(1, "x")
	}
	r.serve("/get/removed", has(`{"data":[],"next_page":{}}`)) // a valid last page
	r.mustCatchUp()
}

// TestAFileIsRemovedWhileItIsCopied has an upstream that removes a file while it sends the file. The copy must
// not be served or kept.
func TestAFileIsRemovedWhileItIsCopied(t *testing.T) {
	r := newRig(t)
	r.serve("/get/"+id(1), func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		r.remove(id(1))
		expect.Try(t, r.readRemovals(context.WithoutCancel(t.Context())))
		io.WriteString(w, " done")
	})
	r.assets.put(1, document(1, "half done"))
	r.mustCatchUp()
	r.lacks(1, fault.Gone)
	if got := r.blobs(); len(got) != 0 {
		t.Errorf("got the bytes %q, want none", got)
	}
}
