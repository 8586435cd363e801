package filesvc

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
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

// TestUploadsOfOneContentAtOnce uploads the same bytes many times at the same time. Each upload must become a
// file of its own.
func TestUploadsOfOneContentAtOnce(t *testing.T) {
	const uploads = 20
	r := start(t, same)
	text := strings.Repeat("the same bytes ", 10_000)
	var mu sync.Mutex
	addresses := map[string]bool{}
	var wg sync.WaitGroup
	for range uploads {
		wg.Go(func() {
			to := r.upload(broker, "/upload", "a.txt", "text/plain", text).field(t, "get_url")
			mu.Lock()
			addresses[to] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	expect.FatalIf(t, len(addresses) != uploads, "got %d addresses, want %d", len(addresses), uploads)
	for to := range addresses {
		if got := r.get(nobody, to); got.status != 200 || got.text != text {
			t.Errorf("got %d and %d bytes, want the file", got.status, len(got.text))
		}
	}
}
