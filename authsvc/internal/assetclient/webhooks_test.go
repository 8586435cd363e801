package assetclient_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

func TestWebhooksAreReadAndChangedAsAnAdministrator(t *testing.T) {
	var requests []string
	var signer *identity.Signer
	handler := func(w http.ResponseWriter, r *http.Request) {
		by, err := signer.Verify(r.Header.Get(identity.Header))
		if err != nil || by.Role != identity.Administrator || by.KeyID != "key-1" {
			t.Errorf("got the caller %+v, %v; want an administrator with the user's key", by, err)
		}
		body, err := io.ReadAll(r.Body)
		expect.Try(t, err)
		requests = append(requests, fmt.Sprintf("%s %s %s", r.Method, r.URL, body))
		if r.URL.RawQuery != "" {
			io.WriteString(w, `{"data":[{"id":"w1","opt_fields":"*","behind":7}],"next_page":{"after":"w1"}}`)
			return
		}
		io.WriteString(w, `{"data":{"id":"w1","state":"disabled","reason":"gone","next":"2026-11-22T09:30:00+00:00"}}`)
	}
	client, s := newClient(t, handler)
	signer = s
	found, next, err := client.Webhooks(t.Context(), "key-1", "acme", "w0")
	if err != nil || next != "w1" || len(found) != 1 || found[0].Fields != "*" || found[0].Behind != 7 {
		t.Errorf("got %+v, next %q, %v; want w1 with its fields, and next w1", found, next, err)
	}
	one, err := client.Webhook(t.Context(), "key-1", "w/1")
	if err != nil || one.Reason != "gone" || one.Next == nil || one.Succeeded != nil {
		t.Errorf("got %+v, %v; want reason gone, a next attempt and no success", one, err)
	}
	for _, c := range []struct {
		do     assetclient.WebhookAction
		offset string
	}{
		{assetclient.StopWebhook, ""}, {assetclient.ResumeWebhook, ""}, {assetclient.ReplayWebhook, ""},
		{assetclient.ReplayWebhook, "2026"}, {assetclient.RemoveWebhook, ""},
	} {
		expect.Err(t, client.ChangeWebhook(t.Context(), "key-1", "w1", c.do, c.offset), nil, "%s", c.do)
	}
	expect.Fails(t, client.ChangeWebhook(t.Context(), "key-1", "w1", "dance", ""), "an unknown action")
	const base = "http://assetsvc/api/2.5/webhooks"
	want := []string{
		"GET " + base + "?after=w0&broker=acme ",
		"GET " + base + "/w%2F1 ",
		"PATCH " + base + `/w1 {"data":{"state":"disabled"}}`,
		"PATCH " + base + `/w1 {"data":{"state":"active"}}`,
		"POST " + base + `/w1/replay {"data":{}}`,
		"POST " + base + `/w1/replay {"data":{"offset":"2026"}}`,
		"DELETE " + base + "/w1 ",
	}
	expect.NoDiff(t, cmp.Diff(want, requests), "the requests")
}
