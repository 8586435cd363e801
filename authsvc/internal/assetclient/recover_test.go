package assetclient_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

func TestAnAssetIsRecoveredAsAnAdministrator(t *testing.T) {
	var request string
	var signer *identity.Signer
	status := http.StatusOK
	client, signer := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		by, err := signer.Verify(r.Header.Get(identity.Header))
		if err != nil || by.Role != identity.Administrator {
			t.Errorf("got the caller %+v, %v; want an administrator", by, err)
		}
		body, err := io.ReadAll(r.Body)
		expect.Try(t, err)
		request = fmt.Sprintf("%s %s %s by %s in %s from %s", r.Method, r.URL.Path, body, by.KeyID,
			r.Header.Get(httpserver.RequestIDHeader), r.Header.Get(httpserver.ClientHeader))
		w.WriteHeader(status)
		if status == http.StatusOK {
			io.WriteString(w, `{"access":{"token":"tok","transfer":"tra"},"data":{"id":"a1","owner":"acme"}}`)
			return
		}
		io.WriteString(w, `{"status":"error","errors":[{"location":"body","name":"reason","description":"no"}]}`)
	})
	by := assetclient.Recoverer{KeyID: "key-1", RequestID: "form-X", From: "192.0.2.1"}
	got, err := client.Recover(t.Context(), by, "a1", "lost")
	if want := (assetclient.Recovered{Owner: "acme", Token: "tok", Transfer: "tra"}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	const want = `POST /api/2.5/assets/a1/recovery {"data":{"reason":"lost"}} by key-1 in form-X from 192.0.2.1`
	expect.Equal(t, request, want, "the request")
	status = http.StatusBadRequest
	expect.FaultOf(t, fault.Invalid, "")(client.Recover(t.Context(), by, "a1", ""))
}
