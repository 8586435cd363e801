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

// files is a registry with one segment. It sends at most most bytes for each request, and
// then breaks the connection.
type files struct {
	content []byte
	most    int
	ranges  []string // that were asked for
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
	got, err := s.client(t).Segment(t.Context(), segmentOf(content)) // of two tries without progress
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %q, %v; want %q", got, err, content)
	}
	if want := []string{"", "bytes=30-", "bytes=60-", "bytes=90-"}; !slices.Equal(f.ranges, want) {
		t.Errorf("got the ranges %q, want %q", f.ranges, want)
	}
}

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
	}{
		{"another byte", other, segmentOf(content)},
		{"a byte less", content[:99], segmentOf(content)},
		{"a byte more", append(bytes.Clone(content), 'x'), segmentOf(content)},
		{"an empty file", nil, segmentOf(content)},
		{"a length without a bound", content, longer},
		{"a path that leaves the registry", content, elsewhere},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStreams(t, (&files{content: c.content, most: 1000}).ServeHTTP)
			client := s.client(t)
			got, err := client.Segment(t.Context(), c.segment)
			if empty := c.name == "an empty file"; err == nil || !empty && !errors.Is(err, ErrSegment) {
				t.Errorf("got %q, %v; want %v", got, err, ErrSegment)
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
		fmt.Fprintf(w, `{"data":{"position":%q,"assets":7,"segments":[{"path":"/segment"}]}}`, at)
	})
	got, err := s.client(t).Snapshot(t.Context())
	if want := (Position{at, "data"}); err != nil || got.Start != want || len(got.Segments) != 1 || got.Assets != 7 {
		t.Errorf("got %+v, %v; want the start %v, 7 assets and one segment", got, err, want)
	}
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
				if err != nil || got.Len() != 1 || string(got.Raw[0]) != entry || got.Next.Offset != "1" {
					t.Errorf("got %q to %q, %v; want %s to 1", got.Raw, got.Next.Offset, err, entry)
				}
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
