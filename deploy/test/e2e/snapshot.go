package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// copied is what a client has read of a snapshot.
type copied struct {
	date, position string
	assets         map[string]string // JSON texts of assets; the keys are their ids
}

// testSnapshot reads the newest snapshot and follows the feed from its position
// (docs/contract.md, "Snapshot").
// Promises: segments, snapshot-lines
func testSnapshot(t *testing.T, a api) {
	published := a.publish(t, validAsset())
	c := a.newCopy(t, "")
	a.follow(t, c.position, c.assets)
	want := map[string]string{}
	a.follow(t, "", want)
	if got := c.assets[published.id]; got == "" || got != want[published.id] {
		t.Errorf("got %s, want the asset as the feed shows it, %s", got, want[published.id])
	}
	got := a.do(t, call{method: "GET", path: "/api/2.5/snapshot"}).must(t, 200)
	segment := text(object(list(got.data()["segments"])[0])["path"])
	part := a.do(t, call{method: "GET", path: segment}.with("Range", "bytes=0-3"))
	if part.status != http.StatusPartialContent || part.text != "\x28\xb5\x2f\xfd" {
		t.Errorf("got %d and the first bytes %x, want 206 and the magic number of zstd", part.status, part.text)
	}
	a.do(t, call{method: "GET", path: segment}.with("Range", "bytes=0-1,2-3")).fails(t, 416, "header/Range")
	a.do(t, call{method: "GET", path: "/api/2.4/snapshot"}).fails(t, 404, "url/snapshot")
}

// newCopy waits for a snapshot whose date differs from the given one, and reads it.
func (a api) newCopy(t *testing.T, date string) copied {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got no snapshot within a minute after the snapshot of %q, want one", date)
		}
		got := a.do(t, call{method: "GET", path: "/api/2.5/snapshot"})
		if got.status == http.StatusNotFound || text(got.data()["date"]) == date {
			continue
		}
		d := got.must(t, 200).data()
		c := copied{date: text(d["date"]), position: text(d["position"]), assets: map[string]string{}}
		if a.readSegments(t, list(d["segments"]), c.assets) {
			return c
		}
	}
}

// readSegments reads the files of a snapshot. It returns false if one of the files no longer exists.
func (a api) readSegments(t *testing.T, segments []any, into map[string]string) bool {
	t.Helper()
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	for _, s := range segments {
		resp, err := http.Get(a.base + text(object(s)["path"]))
		if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusNotFound {
			return false
		}
		sum := sha256.Sum256(file)
		if got, want := hex.EncodeToString(sum[:]), text(object(s)["sha256"]); got != want {
			t.Fatalf("got a file with the hash %s and status %d, want %s", got, resp.StatusCode, want)
		}
		lines, err := decoder.DecodeAll(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(lines)) {
			keep(t, []byte(line), into)
		}
	}
	return true
}

// follow reads all assets after an offset.
func (a api) follow(t *testing.T, offset string, into map[string]string) {
	t.Helper()
	a.wholePages(t, offset, func(asset []byte) { keep(t, asset, into) })
}

// wholePages calls the function `take` with each entry of the feed after an offset. The entries have all fields.
func (a api) wholePages(t *testing.T, offset string, take func(entry []byte)) {
	t.Helper()
	for {
		resp, err := http.Get(a.base + "/api/2.5/assets?mode=_all_&opt_fields=*&limit=1000&offset=" + url.QueryEscape(offset))
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Data []json.RawMessage
			Next struct{ Offset string } `json:"next_page"`
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("follow the feed: got %d, %v; want 200", resp.StatusCode, err)
		}
		if len(page.Data) == 0 {
			return
		}
		for _, asset := range page.Data {
			take(asset)
		}
		offset = page.Next.Offset
	}
}

// keep adds the text of an asset to a map.
func keep(t *testing.T, asset []byte, into map[string]string) {
	t.Helper()
	var shown map[string]json.RawMessage
	if err := json.Unmarshal(asset, &shown); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		fields = append(fields, name+"="+string(shown[name]))
	}
	into[strings.Trim(string(shown["id"]), `"`)] = strings.Join(fields, "\n")
}
