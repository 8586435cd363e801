package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// files is a fake registry with one segment. It sends at most the number of bytes in the field `most`, and then
// breaks the connection.
type files struct {
	content []byte
	most    int
	ranges  []string // the ranges that were asked for
}

func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.ranges = append(f.ranges, r.Header.Get("Range"))
	if r.URL.Path != "/segment" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	first, err := strconv.Atoi(strings.Trim(r.Header.Get("Range"), "bytes=-"))
	if err != nil {
		first = 0
	}
	rest := f.content[min(first, len(f.content)):]
	switch {
	case len(rest) == 0 && first > 0:
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	case first > 0:
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, len(f.content)-1, len(f.content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	w.Write(rest[:min(f.most, len(rest))])
	w.(http.Flusher).Flush()
	if len(rest) > f.most {
		panic(http.ErrAbortHandler)
	}
}

func segmentOf(content []byte) Segment {
	sum := sha256.Sum256(content)
	return Segment{Path: "/segment", Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

func TestASegmentThatBreaksOffIsReadOn(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 10)
	f := &files{content: content, most: 30}
	s := newStreams(t, f.ServeHTTP)
	got, err := s.client(t).Segment(t.Context(), segmentOf(content)) // each try reads 30 bytes more, so Segment goes on
	errorIf(t, err != nil || !bytes.Equal(got, content), "got %q, %v; want %q", got, err, content)
	if want := []string{"", "bytes=30-", "bytes=60-", "bytes=90-"}; !slices.Equal(f.ranges, want) {
		t.Errorf("got the ranges %q, want %q", f.ranges, want)
	}
}

// Promises: copy-files
func TestAWrongSegmentIsRefused(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 10)
	other := bytes.Clone(content)
	other[50]++
	longer := segmentOf(content)
	longer.Bytes = 1 << 40
	elsewhere := segmentOf(content)
	elsewhere.Path = "@elsewhere.example/segment"
	for _, c := range []struct {
		name    string
		content []byte
		segment Segment
		says    string
	}{
		{"another byte", other, segmentOf(content), "has the hash"},
		{"a byte less", content[:99], segmentOf(content), "has 99 bytes, want 100"},
		{"a byte more", append(bytes.Clone(content), 'x'), segmentOf(content), "has more than 100 bytes"},
		{"an empty file", nil, segmentOf(content), "ended after 0 of 100 bytes"},
		{"a length without a bound", content, longer, "lists 1099511627776 bytes"},
		{"a path that leaves the registry", content, elsewhere, "@elsewhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStreams(t, (&files{content: c.content, most: 1000}).ServeHTTP)
			client := s.client(t)
			got, err := client.Segment(t.Context(), c.segment)
			if empty := c.name == "an empty file"; err == nil || !empty && !errors.Is(err, ErrSegment) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, %v; want %v with %q", got, err, ErrSegment, c.says)
			}
		})
	}
}

func TestASegmentThatIsGone(t *testing.T) {
	s := newStreams(t, (&files{}).ServeHTTP)
	segment := segmentOf(nil)
	segment.Path = "/gone"
	if _, err := s.client(t).Segment(t.Context(), segment); !IsNotFound(err) {
		t.Errorf("got %v, want a 404", err)
	}
}

func TestASnapshotHasThePositionToFollowFrom(t *testing.T) {
	const at = "2026-11-23T00:32:46.881553+00:00"
	s := newStreams(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "SERVER_ID=data; Path=/")
		fmt.Fprint(w, manifestOf(at, 7, 1000, aFile(0, 7, 1000)))
	})
	got, err := s.client(t).Snapshot(t.Context())
	if want := (Position{at, "data"}); err != nil || got.Start != want || len(got.Segments) != 1 || got.Assets != 7 {
		t.Errorf("got %+v, %v; want the start %v, 7 assets and one segment", got, err, want)
	}
}

// aFile returns a snapshot's entry for one file. The file has the assets whose ids begin with the given digit.
func aFile(digit, assets, lines int) string {
	return fmt.Sprintf(`{"from":"%x%s","to":"%x%s","assets":%d,"bytes":10,"uncompressedBytes":%d,"sha256":%q,"path":"/f"}`,
		digit, strings.Repeat("0", 31), digit, strings.Repeat("f", 31), assets, lines, strings.Repeat("a", 64))
}

func manifestOf(position string, assets, lines int, files ...string) string {
	return fmt.Sprintf(`{"data":{"position":%q,"assets":%d,"bytes":%d,"uncompressedBytes":%d,"segments":[%s]}}`,
		position, assets, 10*len(files), lines, strings.Join(files, ","))
}

// Promises: copy-bounds
func TestASnapshotThatDoesNotAddUpIsRefused(t *testing.T) {
	errorIf(t, maxSegments != 100_000 || maxLines != 16<<20,
		"got %d files of up to %d bytes of lines, want 100,000 of 16 MiB", maxSegments, maxLines)
	const at = "2026-11-23T00:32:46.881553+00:00"
	wrong := func(old, new string) string {
		return strings.Replace(manifestOf(at, 9, 3000, aFile(0, 7, 1000), aFile(1, 2, 2000)), old, new, 1)
	}
	for _, c := range []struct{ name, manifest string }{
		{"nothing", `{}`},
		{"no position", manifestOf("", 0, 0)},
		{"more assets than the files have", wrong(`"assets":9`, `"assets":10`)},
		{"fewer bytes of lines than the files have", wrong(`"uncompressedBytes":3000`, `"uncompressedBytes":1000`)},
		{"fewer bytes than the files have", wrong(`"bytes":20`, `"bytes":10`)},
		{"sums that wrap around", manifestOf(at, 0, 0, aFile(0, 1<<62, 1000), aFile(1, 1<<62, 1000),
			aFile(2, 1<<62, 1000), aFile(3, 1<<62, 1000))},
		{"a file of many lines", manifestOf(at, 1, maxLines+1, aFile(0, 1, maxLines+1))},
		{"a file of fewer than no lines", wrong(`"uncompressedBytes":1000`, `"uncompressedBytes":-1`)},
		{"more assets than lines have room for", manifestOf(at, 100, 1000, aFile(0, 100, 1000))},
		{"files in another order", manifestOf(at, 9, 3000, aFile(1, 7, 1000), aFile(0, 2, 2000))},
		{"the same range twice", manifestOf(at, 9, 3000, aFile(1, 7, 1000), aFile(1, 2, 2000))},
		{"ids in capitals", wrong("0f", "0F")},
		{"a hash that is too short", wrong(`aaaa"`, `aaa"`)},
		{"a path of another host", wrong(`"path":"/f"`, `"path":"@other.example/f"`)},
		{"too many files", manifestOf(at, 0, 0, slices.Repeat([]string{"{}"}, maxSegments+1)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStreams(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.manifest) })
			if got, err := s.client(t).Snapshot(t.Context()); err == nil {
				t.Errorf("got %d assets in %d files, want an error", got.Assets, len(got.Segments))
			}
		})
	}
}

func TestAnAnswerThatIsNoPageMovesNoPosition(t *testing.T) {
	const entry = `{"id":"a","dateModified":"2"}`
	for _, c := range []struct{ name, text string }{
		{"nothing", `{}`},
		{"no list", `{"next_page":{"offset":"2"}}`},
		{"no next page", `{"data":[` + entry + `]}`},
		{"a next page without an offset", `{"data":[],"next_page":{}}`},
		{"more entries than were asked for", `{"data":[{},{},{}],"next_page":{"offset":"2"}}`},
	} {
		for _, raw := range []bool{false, true} {
			s := newStreams(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.text) })
			got, err := s.client(t).Page(t.Context(), Feed{Position: Position{Offset: "1"}, Limit: 2, Raw: raw})
			errorIf(t, !errors.Is(err, errNoPage),
				"%s, raw %t: got %+v, %v; want %v", c.name, raw, got, err, errNoPage)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add(manifestOf("2026-11-23T00:32:46.881553+00:00", 9, 3000, aFile(0, 7, 1000), aFile(1, 2, 2000)))
	f.Add(`{"data":{"segments":[{},null,{"from":1}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		body, err := open[Snapshot](request{}, answer{text: []byte(text)})
		if err != nil || body.Data.check() != nil {
			return
		}
		lines := int64(0)
		for _, s := range body.Data.Segments {
			lines += s.UncompressedBytes
		}
		if lines != body.Data.UncompressedBytes || len(body.Data.Segments) > maxSegments {
			t.Errorf("got %d files with %d bytes of lines, want %d bytes", len(body.Data.Segments), lines,
				body.Data.UncompressedBytes)
		}
	})
}

func TestPagesAndStreamsKeepTheTextOfEntries(t *testing.T) {
	const entry = `{"id":"a","dateModified":"1","quantity":240.50,  "x":null}`
	page := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[%s],"next_page":{"offset":"1"}}`, entry)
	}
	for _, c := range []struct {
		name string
		give http.HandlerFunc
	}{
		{"a page", page},
		{"a stream", sends("id: 1\ndata: " + entry + "\n\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for got, err := range newStreams(t, c.give).client(t).Follow(ctx, Feed{Live: true, Raw: true}, time.Hour) {
				errorIf(t, err != nil || got.Len() != 1 || string(got.Raw[0]) != entry || got.Next.Offset != "1",
					"got %q to %q, %v; want %s to 1", got.Raw, got.Next.Offset, err, entry)
				break
			}
		})
	}
}

func TestAPageOfAStreamIsBounded(t *testing.T) {
	entry := strings.Repeat("a", 1<<20)
	s := newStreams(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 20 {
			fmt.Fprintf(w, "id: %d\ndata: {\"id\":%q}\n\n", i, entry)
		}
	})
	entries := 0
	for page, err := range s.client(t).Follow(t.Context(), Feed{Live: true, Raw: true, Limit: 1000}, time.Hour) {
		if err != nil || page.Len() > 5 {
			t.Fatalf("got a page of %d entries of 1 MiB, %v; want at most 5", page.Len(), err)
		}
		if entries += page.Len(); entries == 20 {
			return
		}
	}
}
