package replica

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"asset-registry.example/client"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/testing/expect"
)

// hostile returns a server that answers each path with the given text.
func hostile(t *testing.T, answers map[string]string) Source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		http.SetCookie(w, &http.Cookie{Name: "SERVER_ID", Value: "first"})
		text, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{URL: server.URL, Retry: client.Retry{Tries: 1}})
	expect.OK(t, err)
	return Source{Client: c, Address: server.URL, Pause: time.Millisecond}
}

// bomb returns a zstd file of one frame that does not say how long its output is. The output is one entry with a text
// of the given size in bytes.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	expect.OK(t, err)
	head, tail := entryWith(`"x":"`), "\n"
	head = strings.TrimSuffix(head, "}")
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	w.Write([]byte(head))
	for left := size; left > 0; left -= len(chunk) {
		w.Write(chunk[:min(left, len(chunk))])
	}
	w.Write([]byte(`"}` + tail))
	expect.OK(t, w.Close())
	return packed.Bytes()
}

// TestAFileHasTheBytesThatTheSnapshotSays unpacks files whose output is longer or shorter than the snapshot
// says. Both must be refused, and a long output must not be held in memory.
func TestAFileHasTheBytesThatTheSnapshotSays(t *testing.T) {
	whole := bomb(t, 1000)
	decoder, err := newDecoder()
	expect.OK(t, err)
	defer decoder.Close()
	lines, err := decoder.DecodeAll(whole, make([]byte, 0, 2000))
	expect.OK(t, err)
	for _, c := range []struct {
		name   string
		packed []byte
		says   int
		right  bool
	}{
		{"as many", whole, len(lines), true},
		{"one more", whole, len(lines) - 1, false},
		{"one less", whole, len(lines) + 1, false},
		{"much more", bomb(t, 900<<20), len(lines), false},
		{"none, says the snapshot", bomb(t, 900<<20), 0, false},
		{"two frames", bytes.Repeat(whole, 2), len(lines), false},
		{"thousands of frames", bytes.Repeat(bomb(t, 4<<20), 200), len(lines), false},
		{"text after the frame", append(bytes.Clone(whole), "x"...), len(lines), false},
	} {
		s := client.Segment{From: idOf(0), To: strings.Repeat("f", 32), Assets: 1, UncompressedBytes: int64(c.says)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		entries, err := unpack(s, c.packed, decoder)
		runtime.ReadMemStats(&after)
		expect.ErrorIf(t, (err == nil) != c.right || c.right && len(entries) != 1,
			"%s: got %d entries, %v; want right %t", c.name, len(entries), err, c.right)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: got %d MiB of memory, want less than 64", c.name, took>>20)
		}
	}
}

// TestAFileHasOnlyTheIDsThatTheSnapshotSays unpacks a file with one asset for several ranges of ids.
func TestAFileHasOnlyTheIDsThatTheSnapshotSays(t *testing.T) {
	packed := bomb(t, 1000)
	decoder, err := newDecoder()
	expect.OK(t, err)
	defer decoder.Close()
	lines, err := decoder.DecodeAll(packed, make([]byte, 0, 2000))
	expect.OK(t, err)
	for _, c := range []struct {
		from, to int
		right    bool
	}{{1, 1, true}, {0, 2, true}, {0, 0, false}, {2, 3, false}} {
		s := client.Segment{From: idOf(c.from), To: idOf(c.to), Assets: 1, UncompressedBytes: int64(len(lines))}
		if _, err := unpack(s, packed, decoder); (err == nil) != c.right || err != nil && !errors.Is(err, ErrEntry) {
			t.Errorf("asset 1 in a file of %d to %d: got %v, want right %t", c.from, c.to, err, c.right)
		}
	}
}

// TestASnapshotOfSmallFilesTakesLittleMemory reads a snapshot that says that its files are empty when decompressed. In
// fact each has 64 MiB. Such files must be refused before memory is taken for these 64 MiB.
func TestASnapshotOfSmallFilesTakesLittleMemory(t *testing.T) {
	packed := bomb(t, 64<<20)
	sum := sha256.Sum256(packed)
	var files []string
	for n := range 16 {
		files = append(files, fmt.Sprintf(
			`{"from":"%x%031x","to":"%x%s","assets":0,"bytes":%d,"uncompressedBytes":0,"sha256":%q,"path":"/f"}`,
			n, 0, n, strings.Repeat("f", 31), len(packed), hex.EncodeToString(sum[:])))
	}
	source := hostile(t, map[string]string{
		"/f": string(packed),
		"/api/2.5/snapshot": fmt.Sprintf(
			`{"data":{"position":%q,"date":%q,"assets":0,"bytes":%d,"uncompressedBytes":0,"segments":[%s]}}`,
			stampOf(100), stampOf(100), 16*len(packed), strings.Join(files, ",")),
	})
	r := open(t, t.TempDir())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // less than the pause before the next attempt
	defer cancel()
	err := CatchUp(ctx, r, source, func(Progress) {})
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || took > 128 {
		t.Errorf("got %v and %d MiB of memory, want an error and less than 128", err, took)
	}
}

// TestOnlyAnotherCookieMeansOtherData has a registry that does not know the position of the copy.
func TestOnlyAnotherCookieMeansOtherData(t *testing.T) {
	f, r := newFake(t), open(t, t.TempDir())
	f.publish(1, 100)
	mustCatchUp(t, r, f)
	run := &run{Store: r}
	for id, want := range map[string]bool{"": false, "first": false, "other": true} {
		err := fmt.Errorf("%w: %w", client.ErrStartOver, &client.Error{Status: 404, ServerID: id})
		expect.Equal(t, errors.Is(run.otherData(err), ErrOtherData), want, "the cookie %q: other data", id)
	}
}

// TestTheEndOfAFeedIsAsOldAsItsAnswer asks a mirror whose answer is 100 s old.
func TestTheEndOfAFeedIsAsOldAsItsAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "SERVER_ID=first")
		w.Header().Set("Age", "100")
		fmt.Fprint(w, `{"data":[]}`)
	}))
	defer server.Close()
	end, err := AskEnd(t.Context(), httpclient.New(nil), server.URL, "test")
	if latest := time.Now().Add(-100 * time.Second); err != nil || end.At.After(latest) {
		t.Errorf("got the end of %v, %v; want it before %v", end.At, err, latest)
	}
}

func TestAnAnswerWithoutCookieOrPageIsNone(t *testing.T) {
	for _, c := range []struct {
		name string
		give http.HandlerFunc
	}{
		{"an empty object", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }},
		{"a page without a cookie", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[],"next_page":{"offset":""}}`)
		}},
		{"an object with a cookie", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "SERVER_ID=other")
			fmt.Fprint(w, `{}`)
		}},
		{"an unknown offset without a cookie", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"errors":[{"location":"querystring","name":"offset"}]}`)
		}},
		{"another status", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "SERVER_ID=first")
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
			fmt.Fprint(w, `{"data":[],"next_page":{"offset":"`+stampOf(100)+`"}}`)
		}},
		{"an entry of the future", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "SERVER_ID=first")
			const far = `"9999-01-01T00:00:00.000000+00:00"`
			fmt.Fprint(w, `{"data":[{"id":"`+idOf(2)+`","dateModified":`+far+`}],"next_page":{"offset":`+far+`}}`)
		}},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/there" {
				w.Header().Set("Set-Cookie", "SERVER_ID=other")
				fmt.Fprint(w, `{"data":[],"next_page":{"offset":""}}`)
				return
			}
			http.Redirect(w, r, "/there", http.StatusFound)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, r := newFake(t), open(t, t.TempDir())
			f.publish(1, 100)
			mustCatchUp(t, r, f)
			before := r.State()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				c.give(w, q)
			}))
			defer server.Close()
			if end, err := AskEnd(t.Context(), httpclient.New(nil), server.URL, "test"); err == nil {
				t.Errorf("got the end %+v, want an error", end)
			}
			source := f.source(t)
			var err error
			source.Client, err = client.New(client.Config{URL: server.URL, Retry: client.Retry{Tries: 1}})
			expect.OK(t, err)
			err = CatchUp(t.Context(), r, source, func(Progress) {})
			expect.ErrorIf(t, err == nil || errors.Is(err, ErrOtherData), "got %v, want an error that voids nothing", err)
			expect.Equal(t, r.State(), before, "the state")
			expect.Fails(t, CatchUp(t.Context(), open(t, t.TempDir()), source, func(Progress) {}), "a new copy")
		})
	}
}

func TestEntriesOfTheFutureAreRefused(t *testing.T) {
	at := func(s string) string { return fmt.Sprintf(`{"id":%q,"dateModified":%q}`, idOf(2), s) }
	soon := time.Now().Add(5 * time.Second).UTC().Format("2006-01-02T15:04:05.000000-07:00")
	const far = "9999-01-01T00:00:00.000000+00:00"
	for _, c := range []struct {
		name, page string
		right      bool
	}{
		{"a clock that is a little ahead", `{"data":[` + at(soon) + `],"next_page":{"offset":"` + soon + `"}}`, true},
		{"far in the future", `{"data":[` + at(far) + `],"next_page":{"offset":"` + far + `"}}`, false},
		{"after the end of the page", `{"data":[` + at(soon) + `],"next_page":{"offset":"` + stampOf(200) + `"}}`, false},
		{"far after the end of the page", `{"data":[` + at(far) + `],"next_page":{"offset":"` + stampOf(200) + `"}}`, false},
		{"an end in the future", `{"data":[],"next_page":{"offset":"` + far + `"}}`, false},
		{"an end before the copy", `{"data":[],"next_page":{"offset":"` + stampOf(1) + `"}}`, false},
		{"before the copy", `{"data":[` + at(stampOf(50)) + `],"next_page":{"offset":"` + stampOf(200) + `"}}`, false},
		{"twice", `{"data":[` + at(stampOf(150)) + `,` + at(stampOf(150)) + `],"next_page":{"offset":"` + stampOf(200) + `"}}`,
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, r := newFake(t), open(t, t.TempDir())
			f.publish(1, 100)
			mustCatchUp(t, r, f)
			run := &run{Store: r, source: f.source(t), tell: func(Progress) {}}
			source := hostile(t, map[string]string{"/api/2.5/assets": c.page})
			page, err := source.Page(t.Context(), run.feed())
			expect.OK(t, err)
			if err = run.page(page); (err == nil) != c.right {
				t.Errorf("got %v, want right %t", err, c.right)
			}
			f.publish(2, 300)
			if !c.right {
				mustCatchUp(t, r, f)
			}
		})
	}
}

func TestADateThatAnotherAssetHasInTheCopyIsOtherData(t *testing.T) {
	f, r := newFake(t), open(t, t.TempDir())
	f.publish(1, 100)
	f.publish(2, 200)
	mustCatchUp(t, r, f)
	err := r.Apply(Change{State: r.State(), Entries: []Entry{{ID: idOf(3), Position: 200e6, JSON: []byte("{}")}}})
	expect.Err(t, err, ErrOtherData, "")
	equal(t, r, f)
}

func FuzzUnpack(f *testing.F) {
	packed := func(text string) []byte {
		w, err := zstd.NewWriter(nil)
		expect.OK(f, err)
		return w.EncodeAll([]byte(text), nil)
	}
	one := entryWith(`"x":1`) + "\n"
	f.Add(packed(one), int64(len(one)))
	f.Add(packed(strings.Repeat(one, 2)), int64(len(one)))
	f.Add([]byte{}, int64(0))
	decoder, err := newDecoder()
	expect.OK(f, err)
	f.Fuzz(func(t *testing.T, file []byte, says int64) {
		says = max(0, min(says, 1<<20))
		s := client.Segment{From: idOf(0), To: strings.Repeat("f", 32), Assets: 1, UncompressedBytes: says}
		entries, err := unpack(s, file, decoder)
		expect.ErrorIf(t, err == nil && (len(entries) != 1 || int64(len(entries[0].JSON)) > says),
			"got %d entries for %d bytes, want one", len(entries), says)
	})
}
