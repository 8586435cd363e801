package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/proxy"
	"asset-registry/shared/export"
	"asset-registry/shared/fair"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// TestAnExportReadsSoManyBytes allows only the bytes of two assets, but finds three. Reading the third one must
// fail.
// Promises: export-bounds
func TestAnExportReadsSoManyBytes(t *testing.T) {
	signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}, time.Now)
	expect.OK(t, err)
	assets := proxy.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"data":{"status":"active","x":"%s"}}`, strings.Repeat("x", 1000))
	}), signer)
	e := exporting{
		API: &API{config: Config{Assets: assets, Places: fair.New(1)}}, ctx: t.Context(),
		out: &parts{w: httptest.NewRecorder()}, left: 2500,
	}
	file, err := export.Searches[0].Open(e.out)
	expect.OK(t, err)
	for n := range 3 {
		if err := e.add(file, "id"); (err != nil) != (n == 2) {
			t.Errorf("asset %d: got %v, want an error of the third only", n+1, err)
		}
	}
}

// TestAnExportEndsAfterFiveMinutes exports 400 assets under a simulated clock. A read of an asset takes a second.
// The export must end before its file is complete, so that the client cannot hold its turn for longer.
// Promises: export-bounds
func TestAnExportEndsAfterFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}, time.Now)
		expect.OK(t, err)
		assets := proxy.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			fmt.Fprint(w, `{"data":{"status":"active"}}`)
		}), signer)
		search := proxy.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var ids []string
			for n := range 400 {
				ids = append(ids, fmt.Sprintf(`{"id":"%d"}`, n))
			}
			fmt.Fprintf(w, `{"data":[%s],"next_page":{"search_after":""}}`, strings.Join(ids, ","))
		}), signer)
		a := &API{config: Config{Assets: assets, Search: search, Places: fair.New(1)}}
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequest(http.MethodGet, "/search.csv", nil)
		begun := time.Now()
		defer func() {
			if end := recover(); end != http.ErrAbortHandler {
				t.Errorf("got %v at the end, want a connection that is closed without the rest", end)
			}
			if took := time.Since(begun); took < exportWithin || took > exportWithin+exportRead {
				t.Errorf("got an export of %v, want one of %v", took, exportWithin)
			}
			time.Sleep(exportRead) // the last read ends
		}()
		if err := a.export(export.Searches[0], "")(c); err != nil {
			t.Errorf("got %v, want an answer that begins", err)
		}
	})
}

// TestAnExportRestsAsLongAsItWorks exports three pages of 100 assets under a simulated clock. A read of an asset
// takes a second, so the export must ask for a page 200 s after the page before.
func TestAnExportRestsAsLongAsItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}, time.Now)
		expect.OK(t, err)
		assets := proxy.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			fmt.Fprint(w, `{"data":{"status":"active"}}`)
		}), signer)
		begun := time.Now()
		var asked []time.Duration // when the export asked for each page
		search := proxy.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var ids []string
			for n := range exportPage {
				ids = append(ids, fmt.Sprintf(`{"id":"%d-%d"}`, len(asked), n))
			}
			next := ""
			if asked = append(asked, time.Since(begun)); len(asked) < 3 {
				next = "more"
			}
			fmt.Fprintf(w, `{"data":[%s],"next_page":{"search_after":"%s"}}`, strings.Join(ids, ","), next)
		}), signer)
		e := exporting{
			API: &API{config: Config{Assets: assets, Search: search, Places: fair.New(1)}}, ctx: t.Context(),
			out: &parts{w: httptest.NewRecorder()}, more: func() bool { return true },
		}
		query := url.Values{}
		found, err := e.foundIDs(query)
		expect.OK(t, err)
		expect.OK(t, e.run(export.Searches[0], query, found))
		if want := []time.Duration{0, 200 * time.Second, 400 * time.Second}; !slices.Equal(asked, want) {
			t.Errorf("got pages asked for after %v, want after %v", asked, want)
		}
		if got := time.Since(begun); got != 500*time.Second {
			t.Errorf("got a file after %v, want it after 500 s", got)
		}
	})
}

// TestFilesForPeopleAreExports asks for the files of people without a deadline, with the turns of an export, and for
// other paths with these endings.
func TestFilesForPeopleAreExports(t *testing.T) {
	a := &API{config: Config{Timeout: time.Minute}}
	for path, want := range map[string]bool{
		"/uk/search.csv": true, "/uk/search.xlsx": true, "/en/search.csv": true, "/en/search.xlsx": true,
		"/uk/search.geojson": false, "/uk/assets/search.csv": false, "/uk/search.csv/": false, "/de/search.csv": false,
	} {
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequest(http.MethodGet, path, nil)
		expect.Equal(t, a.TimeoutOf(c) == httpserver.Unlimited, want, "%s", path)
	}
}
