package edge

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// Headers in the contract that a script in a web page need not send, or need not read.
var (
	neverSent = []string{"Accept-Language", "Content-Encoding", "Content-Length", "Expect", "Origin", "Transfer-Encoding"}
	// A page may read some of these anyway, and the last one is for the browser alone.
	neverRead = []string{"Cache-Control", "Content-Length", "Content-Type", "Strict-Transport-Security"}
)

// TestAPageMayUseEveryHeaderOfTheContract checks each header that the contract names. Pages must be allowed to send
// it or to read it.
func TestAPageMayUseEveryHeaderOfTheContract(t *testing.T) {
	text, err := os.ReadFile("../../../docs/contract.md")
	expect.OK(t, err)
	lists := strings.Split(corsRequest+", "+corsAnswer(), ", ")
	for i, name := range lists {
		lists[i] = strings.ToLower(name)
	}
	named := regexp.MustCompile("`((?:[A-Z][A-Za-z]*-)+[A-Za-z]+|Accept|Age|Allow|Deprecation|ETag|Expect|Link|Location|"+
		"Prefer|Range|RateLimit|Sunset|Vary)(?:: [^`]*)?`").FindAllStringSubmatch(string(text), -1)
	expect.FatalIf(t, len(named) < 40, "got %d headers in the contract, want more: the pattern is wrong", len(named))
	for _, m := range named {
		name := m[1]
		if slices.Contains(neverSent, name) || slices.Contains(neverRead, name) || slices.Contains(notHeaders, name) {
			continue
		}
		if !slices.Contains(lists, strings.ToLower(name)) {
			t.Errorf("got no %s in the lists of CORS, want it: the contract names it", name)
		}
	}
	for _, name := range []string{"WWW-Authenticate", "Allow", "Retry-After", "X-RateLimit-Reset", "RateLimit-Policy"} {
		if !slices.Contains(strings.Split(corsAnswer(), ", "), name) {
			t.Errorf("got no %s among the headers that pages read, want it", name)
		}
	}
}

// notHeaders has names in the contract that look like headers.
var notHeaders = []string{"UA-AR-DGF-YYYY-MM-DD-NNNNNN", "CAV-PS", "UA-EDR", "NNNNNNNN-N", "Content-Security-Policy"}
