package filesvc

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"asset-registry/shared/identity"
)

// TestManyDocumentsNameOneFileAtOnce claims a file for many documents at the same time, while its bytes arrive.
// No claim may be refused.
func TestManyDocumentsNameOneFileAtOnce(t *testing.T) {
	const documents = 200
	r := start(t, same)
	registered := r.register(broker, `{"data":{"hash":"`+hash("content")+`"}}`)
	id := strings.TrimPrefix(registered.field(t, "data", "url")[:len(base)+5+32], base+"/get/")
	claim := fmt.Sprintf(`{"md5":%q,"broker":"broker1"}`, strings.TrimPrefix(hash("content"), "md5:"))
	service := identity.Identity{Broker: "assetsvc", Role: identity.Service}
	var wg sync.WaitGroup
	for range documents {
		wg.Go(func() {
			r.send(service, http.MethodPost, "/claims/"+id, "application/json", strings.NewReader(claim)).is(t, "a claim", 200, "")
		})
	}
	wg.Go(func() {
		r.upload(broker, registered.field(t, "upload_url"), "a.txt", "text/plain", "content").is(t, "the bytes", 200, "")
	})
	wg.Wait()
	if got := r.get(broker, "/get/"+id); got.text != "content" {
		t.Errorf("got %d %q, want the content", got.status, got.text)
	}
}
