package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

func selectionOfField(n int) stream.Selection {
	return stream.Selection{Version: "2.5", Fields: fmt.Sprint("f", n)}
}

// Promises: stream-selections
func TestSelectionsOfACaller(t *testing.T) {
	s := newSelections()
	var leave func()
	for n := range clientSelections + 1 {
		gone, admitted := s.enter("a", true, selectionOfField(n))
		if want := n < clientSelections; admitted != want {
			t.Fatalf("selection %d of a caller: got admitted %v, want %v", n, admitted, want)
		}
		if admitted {
			leave = gone
		}
	}
	if _, admitted := s.enter("a", true, selectionOfField(0)); !admitted {
		t.Error("a second stream of a selection: got refused, want admitted")
	}
	leave()
	if _, admitted := s.enter("a", true, selectionOfField(clientSelections)); !admitted {
		t.Error("another selection after one has ended: got refused, want admitted")
	}
}

// Promises: stream-selections
func TestSelectionsAreKeptForKeys(t *testing.T) {
	s, admittedAll := newSelections(), 0
	var all []func()
	for n := range maxSelections {
		leave, admitted := s.enter(fmt.Sprint("address ", n), false, selectionOfField(n))
		if admitted {
			admittedAll++
			all = append(all, leave)
		}
	}
	expect.Equal(t, admittedAll, maxSelections*3/4, "selections of callers without a key")
	leave, admitted := s.enter("key", true, selectionOfField(maxSelections))
	expect.FatalIf(t, !admitted, "a caller with a key: got refused, want admitted")
	for _, leave := range append(all, leave) {
		leave()
	}
	if len(s.of)+len(s.anonymous) != 0 {
		t.Errorf("after all have left: got %d callers and %d selections, want none", len(s.of), len(s.anonymous))
	}
}

// Promises: stream-places
func TestPlacesAreKeptForKeys(t *testing.T) {
	refused, err := noop.Meter{}.Int64Counter("refused")
	expect.OK(t, err)
	a := &API{feeds: feeds{
		clients: concurrency.NewShares(2, 4), anonymous: concurrency.NewShares(3, 4), refused: refused,
	}}
	from := func(address, key string) (held, error) {
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequest(http.MethodGet, "/", nil)
		c.Request.Header.Set(httpserver.ClientHeader, address)
		visitorOf(c).key = authapi.Key{Identity: identity.Identity{KeyID: key}}
		return a.takePlace(c)
	}
	var last held
	for n, address := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		if last, err = from(address, ""); err != nil {
			t.Fatalf("stream %d without a key: got %v, want a place", n, err)
		}
	}
	expect.FaultOf(t, fault.Unavailable, "a stream without a key beyond three quarters")(from("192.0.2.4", ""))
	expect.Equal(t, a.feeds.clients.Held(), 3, "after a refusal: places held")
	if _, err := from("192.0.2.4", "key"); err != nil {
		t.Errorf("a stream with a key: got %v, want a place", err)
	}
	last.release()
	if _, err := from("192.0.2.4", ""); err != nil {
		t.Errorf("after a stream without a key has ended: got %v, want a place", err)
	}
}
