package certificate

import (
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/metrictest"
	"asset-registry/shared/testing/expect"
)

// TestAnAuthorityThatAnswersForAnotherHost orders at authorities whose order, or whose demand of a proof, is about
// another host. The manager must stop there, and prove nothing.
func TestAnAuthorityThatAnswersForAnotherHost(t *testing.T) {
	for _, c := range []struct{ name, ordered, proved, says string }{
		{"both are right", "Registry.example", host, "no proof by HTTP"},
		{"another order", "other.example", host, "is for"},
		{"two hosts", host + `"},{"type":"dns","value":"other.example`, host, "is for"},
		{"another proof", host, "other.example", "asks about"},
		{"a proof of nothing", host, "", "asks about"},
	} {
		mux := http.NewServeMux()
		server := httptest.NewTLSServer(mux)
		answer := func(path string, status int, body string) {
			mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Replay-Nonce", "n")
				w.Header().Set("Location", server.URL+path)
				w.WriteHeader(status)
				fmt.Fprint(w, strings.ReplaceAll(body, "URL", server.URL))
			})
		}
		answer("/directory", 200, `{"newNonce":"URL/nonce","newAccount":"URL/account","newOrder":"URL/order"}`)
		answer("/nonce", 200, "")
		answer("/account", 201, `{"status":"valid"}`)
		answer("/order", 201, `{"status":"pending","identifiers":[{"type":"dns","value":"`+c.ordered+
			`"}],"authorizations":["URL/proof"],"finalize":"URL/finalize"}`)
		answer("/proof", 200, `{"status":"pending","identifier":{"type":"dns","value":"`+c.proved+`"},"challenges":[]}`)
		dir := t.TempDir()
		roots := filepath.Join(dir, "roots.pem")
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		expect.OK(t, os.WriteFile(roots, text, 0o600))
		m := Open(Authority{Directory: server.URL + "/directory", Roots: roots}, host, filepath.Join(dir, "acme"),
			slog.New(slog.DiscardHandler), metrictest.New())
		expect.SaysOf(t, c.says, "%s", c.name)(m.ask(t.Context()))
		server.Close()
	}
}
