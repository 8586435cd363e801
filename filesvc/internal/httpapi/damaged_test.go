package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/s3store"
	"asset-registry/shared/identity"
	"asset-registry/shared/s3test"
	"asset-registry/shared/testing/expect"
)

// TestAnotherSumBreaksTheAnswerOff has a bucket whose objects get other bytes of the same length. Nobody may get a
// whole answer with them. A part is no whole file, so nobody compares its sum.
func TestAnotherSumBreaksTheAnswerOff(t *testing.T) {
	server := s3test.Start(t, false, "files")
	address := expect.Get(s3store.Parse(server.Address("files")))(t)
	store := expect.Get(s3store.Open(address, t.TempDir(), time.Minute))(t)
	r := newRig(t, store, func(*Config) {})
	public := httptest.NewServer(r.handler)
	defer public.Close()
	broker := identity.Identity{Broker: "b1", KeyID: "k1", Role: identity.Broker}
	get := func(id, part string) (status int, text string, err error) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, public.URL+"/get/"+id, nil)
		expect.OK(t, err)
		r.sign(t, q, broker)
		if part != "" {
			q.Header.Set("Range", part)
		}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	for _, size := range []int{1, 7, 64 << 10, 200_000, 1 << 20} {
		text := strings.Repeat("x", size)
		f := expect.Get(r.files.Add(t.Context(), broker, file.Upload{Body: strings.NewReader(text), Title: "a.txt"}))(t)
		for _, part := range []string{"", "bytes=0-", fmt.Sprintf("bytes=0-%d", size-1), "bytes=-1"} {
			if _, got, err := get(f.ID, part); err != nil || !strings.HasSuffix(text, got) || part == "" && got != text {
				t.Errorf("%d bytes, range %q: got %d bytes and %v, want the file", size, part, len(got), err)
			}
		}
		stored := filepath.Join(server.Dir, "files", f.Blob)
		expect.OK(t, os.WriteFile(stored, []byte(text[1:]+"y"), 0o600))
		for _, part := range []string{"", "bytes=0-", fmt.Sprintf("bytes=0-%d", size-1)} {
			before := r.files.Counts.Unread.Load()
			status, got, err := get(f.ID, part)
			if status/100 == 2 && err == nil || strings.HasSuffix(got, "y") {
				t.Errorf("%d other bytes, range %q: got %d with %d bytes, want an answer that breaks off", size, part, status, len(got))
			}
			expect.Equal(t, r.files.Counts.Unread.Load()-before, 1, "%d other bytes: readings that failed", size)
		}
		if status, got, err := get(f.ID, "bytes=-1"); size > 1 && (err != nil || status != 206 || got != "y") {
			t.Errorf("the last byte: got %d, %q and %v, want 206", status, got, err)
		}
	}
}
