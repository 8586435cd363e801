package e2e

import (
	"flag"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reads is how many times testFreshReads reads an asset and checks the answer.
var reads = flag.Int("reads", 2_000, "readings that the scenario of fresh readings checks")

// testCaching checks for each kind of answer whether a cache may store it (docs/contract.md, "Caching and
// compression").
func testCaching(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	made := a.makeTransfer(t, "broker3")
	for path, want := range map[string]string{
		"/": "no-cache", "/assets": "no-cache", "/assets/" + c.id: "no-cache",
		"/assets/" + c.id + "/items": "no-cache", "/transfers/" + made.id: "no-cache", "/api/2.5/spore": "no-cache",
		"/api/2.5/openapi.json": "no-cache", "/api/2.5/me": "no-store", "/api/2.5/health": "no-store",
		"/webhooks":                      "no-store",
		"/assets/" + c.id + "/revisions": "no-store", "/assets/none": "no-store",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			got := a.do(t, call{method: method, path: path, key: "administrator"})
			if cache := got.header.Get("Cache-Control"); cache != want {
				t.Errorf("%s %s: got %d with Cache-Control %q, want %q", method, path, got.status, cache, want)
			}
		}
	}
}

// testReadAgain reads an asset several times in each form, before and after a change. The registry may answer later
// readings from memory, but the client must see no difference.
func testReadAgain(t *testing.T, a api) {
	c := a.create(t, validAsset().set("description", strings.Repeat("текст ", 1000))) // long enough to be compressed
	path := "/assets/" + c.id
	for _, title := range []string{"перша", "друга"} {
		a.patch(t, c, fields{"title": title}).must(t, 200)
		tag := a.read(t, c.id).header.Get("ETag")
		get := call{method: "GET", path: path}
		withKey, head := get, get
		withKey.key, head.method = "broker", "HEAD"
		for _, form := range []call{
			get, withKey, head, get.with("Accept-Encoding", "gzip"), get.with("Accept-Encoding", "zstd"),
			get.with("If-None-Match", tag), withKey.with("If-None-Match", tag), head.with("If-None-Match", tag),
			get.with("If-None-Match", `"other"`), get.with("If-None-Match", `"other", `+tag), get.with("If-Match", tag),
			get.with("If-Match", `"other"`), {method: "GET", path: path + "?opt_pretty=1"},
			{method: "GET", path: path + "?opt_jsonp=f"}, {method: "GET", path: "/api/2.4" + path},
		} {
			first := a.do(t, form)
			for range 3 {
				again := a.do(t, form)
				if again.status != first.status || again.text != first.text {
					t.Errorf("%s %s %v again: got %d with %d bytes, want %d with %d", form.method, form.path, form.header,
						again.status, len(again.text), first.status, len(first.text))
				}
				if diff := cmp.Diff(lasting(first.header), lasting(again.header)); diff != "" {
					t.Errorf("%s %s %v again (-first +again):\n%s", form.method, form.path, form.header, diff)
				}
			}
			if shown := first.json["data"]; shown != nil && at(shown, "title") != title {
				t.Errorf("%s %s %v: got title %v, want %s", form.method, form.path, form.header, at(shown, "title"), title)
			}
		}
	}
}

// ageForm matches a valid value of the header Age (RFC 9111, 5.1).
var ageForm = regexp.MustCompile(`^[0-9]+$`)

// lasting returns the headers that stay the same when a request is repeated. It leaves out the identifiers and the
// time of the request, and the number of remaining requests. It also leaves out the header Age, which only a mirror
// sends: the age grows with time, and becomes small again when the mirror asks the registry.
func lasting(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{
		"Date", "X-Request-Id", "X-Trace-Id",
		"Ratelimit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	} {
		h.Del(name)
	}
	for i, age := range h["Age"] {
		h["Age"][i] = ageForm.ReplaceAllLiteralString(age, "some seconds")
	}
	return h
}

// testFreshReads changes a few assets while other clients read them. Before it reads, a reader notes the newest
// acknowledged change. The answer must have that change or a later one.
func testFreshReads(t *testing.T, a api) {
	const assets, readers = 4, 8
	var of [assets]created
	var newest [assets]atomic.Int64 // position of the newest acknowledged change
	for i := range of {
		of[i] = a.create(t, validAsset())
	}
	var read, changes atomic.Int64
	var all sync.WaitGroup
	for i := range assets {
		all.Go(func() {
			for n := 0; read.Load() < int64(*reads) && !t.Failed(); n++ {
				got := a.patch(t, of[i], fields{"title": strconv.Itoa(n)}).must(t, 200)
				newest[i].Store(positionOf(t, got.header))
				changes.Add(1)
			}
		})
	}
	for range readers {
		all.Go(func() {
			for n := int(read.Add(1)); n <= *reads && !t.Failed(); n = int(read.Add(1)) {
				i := n % assets
				want := newest[i].Load()
				if got := positionOf(t, a.headers(t, of[i].id)); got < want {
					t.Errorf("asset %d: got position %d, want at least %d, which was acknowledged", i, got, want)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d readings beside %d changes", *reads, changes.Load())
}

// headers reads an asset and returns the headers of the answer. It checks nothing else, so that it is fast enough
// for many reads.
func (a api) headers(t *testing.T, id string) http.Header {
	resp, err := client.Get(a.base + "/api/" + a.version + "/assets/" + id)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("GET %s: got %d, %v, want 200", id, resp.StatusCode, err)
	}
	return resp.Header
}

// positionOf returns the position in the entity tag of an asset.
func positionOf(t *testing.T, h http.Header) int64 {
	digits, _, _ := strings.Cut(strings.TrimPrefix(h.Get("ETag"), `"`), "-")
	position, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Errorf("got ETag %q, want one that begins with a position", h.Get("ETag"))
	}
	return position
}
