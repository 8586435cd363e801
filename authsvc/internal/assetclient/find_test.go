package assetclient_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// TestAssetsAreFound asks for one asset, for a broker's assets and for titles. Each request has its own caller.
func TestAssetsAreFound(t *testing.T) {
	const one = `{"id":"a","assetID":"UA-1","title":"<b>","status":"draft","owner":"acme","mode":"test",` +
		`"dateModified":"2026-11-22T09:30:00.000001+02:00"}`
	var signer *identity.Signer
	client, signer := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		by, err := signer.Verify(r.Header.Get(identity.Header))
		expect.OK(t, err)
		answers := map[string]string{
			"/find-asset?number=UA-1 console administrator":                                                          `{"data":` + one + `}`,
			"/api/2.5/me/assets?descending=1&limit=2&status=draft acme broker":                                       `{"data":[{"id":"a"},{"id":"b"}]}`,
			"/api/2.5/me/assets?descending=1&limit=2&opt_fields=assetID%2Ctitle%2Cstatus%2Cowner%2Cmode acme broker": `{"data":[` + one + `]}`,
		}
		asked := fmt.Sprintf("%s %s %s", r.URL.RequestURI(), by.Broker, by.Role)
		expect.ErrorIf(t, answers[asked] == "", "got the request %s, want one of %v", asked, answers)
		fmt.Fprint(w, answers[asked])
	})
	want := adminapi.Asset{
		ID: "a", Number: "UA-1", Title: "<b>", Status: "draft", Owner: "acme", Mode: "test",
		Modified: time.Date(2026, 11, 22, 7, 30, 0, 1000, time.UTC),
	}
	got := expect.Get(client.Asset(t.Context(), "key-1", url.Values{"number": {"UA-1"}}))(t)
	expect.NoDiff(t, cmp.Diff(want, got), "the asset differs")
	drafts, more, err := client.Owned(t.Context(), "key-1", "acme", "draft", 1, false)
	if err != nil || len(drafts) != 1 || !more {
		t.Errorf("got %v, more %t, %v; want one draft and more", drafts, more, err)
	}
	all, more, err := client.Owned(t.Context(), "key-1", "acme", "", 1, true)
	expect.ErrorIf(t, err != nil || more, "got more %t, %v; want no more", more, err)
	expect.NoDiff(t, cmp.Diff([]adminapi.Asset{want}, all), "the assets differ")
	if _, _, asked, err := client.Titles(t.Context(), "x", 1); asked || err != nil {
		t.Errorf("without a search service: got asked %t, %v; want neither", asked, err)
	}
	searching := client.WithSearch(httpserver.InProcess(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.Equal(t, r.URL.RequestURI(), "/api/2.5/search?limit=1&q=old+oak", "the request")
		fmt.Fprint(w, `{"data":[`+one+`],"total":7}`)
	})))
	found, more, asked, err := searching.Titles(t.Context(), "old oak", 1)
	if err != nil || len(found) != 1 || !more || !asked {
		t.Errorf("got %v, more %t, asked %t, %v; want one asset and more", found, more, asked, err)
	}
}
