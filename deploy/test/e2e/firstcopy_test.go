package e2e

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	goclient "asset-registry.example/client"
	"asset-registry/gateway"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

const (
	copiedAssets = 100_000
	copiedPage   = 1000
	pageTakes    = 40 * time.Millisecond // a registry on two cores takes longer for such a page
)

var title = [3900]byte(bytes.Repeat([]byte("x"), 3900))

// library stands for an asset service with copiedAssets assets of 4 KB. Its clock moves only when it answers.
type library struct{ nanos atomic.Int64 }

func (l *library) now() time.Time { return time.Unix(1_800_000_000, l.nanos.Load()) }

func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.nanos.Add(int64(pageTakes))
	first := 0 // the offset after asset n is n seconds after the epoch
	if at, err := time.Parse(time.RFC3339, r.URL.Query().Get("offset")); err == nil {
		first = int(at.Unix())
	}
	w.Header().Set("Content-Type", "application/json")
	var page bytes.Buffer
	page.WriteString(`{"data":[`)
	n := first
	for ; n < min(first+copiedPage, copiedAssets); n++ {
		if n > first {
			page.WriteString(",")
		}
		fmt.Fprintf(&page, `{"id":"%032d","dateModified":%q,"title":"`, n, stampOf(n+1))
		page.Write(title[:])
		page.WriteString(`"}`)
	}
	fmt.Fprintf(&page, `],"next_page":{"offset":%q,"path":"/","uri":"http://localhost/"}}`, stampOf(n))
	w.Write(page.Bytes())
}

func stampOf(seconds int) string {
	return time.Unix(int64(seconds), 0).UTC().Format("2006-01-02T15:04:05.000000+00:00")
}

// TestAFirstCopyIsNeverRefused reads 100,000 assets by pages of 1,000 whole ones, as fast as a registry answers them,
// with the limits of production: with the Go client, and as a crawler of the family does.
// Promises: first-copy
func TestAFirstCopyIsNeverRefused(t *testing.T) {
	for name, copied := range map[string]func(*testing.T, string) int{"the Go client": byClient, "a crawler": byCrawler} {
		var l library
		c := gateway.Config{
			Assets: &l, Now: l.now, Secrets: keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)},
			Auth: httpserver.InProcess(http.NotFoundHandler()), Log: slog.New(slog.DiscardHandler),
		}
		c.Limits = c.Limits.OrDefault(false)
		s := expect.Get(gateway.New(t.Context(), c))(t)
		var refused atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.Handler().ServeHTTP(&watched{w, &refused}, r)
		}))
		if got := copied(t, server.URL); got != copiedAssets || refused.Load() > 0 {
			t.Errorf("%s: got %d assets and %d refusals, want %d and none", name, got, refused.Load(), copiedAssets)
		}
		server.Close()
		s.Close()
	}
}

// watched counts answers with the status 429.
type watched struct {
	http.ResponseWriter
	refused *atomic.Int64
}

func (w *watched) WriteHeader(status int) {
	if status == http.StatusTooManyRequests {
		w.refused.Add(1)
	}
	w.ResponseWriter.WriteHeader(status)
}

func byClient(t *testing.T, at string) (copied int) {
	c := expect.Get(goclient.New(goclient.Config{URL: at}))(t)
	for page, err := range c.Pages(t.Context(), goclient.Feed{Limit: copiedPage, Fields: []string{"*"}, Raw: true}) {
		expect.OK(t, err)
		copied += page.Len()
	}
	return copied
}

// byCrawler follows next_page.offset without compression, and repeats nothing.
func byCrawler(t *testing.T, at string) (copied int) {
	plain := http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer plain.CloseIdleConnections()
	for offset := ""; ; {
		query := "?opt_fields=*&limit=" + strconv.Itoa(copiedPage) + "&offset=" + url.QueryEscape(offset)
		resp := expect.Get(plain.Get(at + "/api/2.5/assets" + query))(t)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("got %s, %v, want a page", resp.Status, err)
		}
		n := bytes.Count(body, []byte(`"id":`))
		if n == 0 {
			return copied
		}
		_, next, _ := bytes.Cut(body, []byte(`"next_page":{"offset":"`))
		next, _, _ = bytes.Cut(next, []byte(`"`))
		copied, offset = copied+n, string(next)
	}
}
