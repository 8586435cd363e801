package edge

import "testing"

// TestAPageMayReadEveryHeaderOfAnAnswer fixes the list, which other packages'
// names go into.
func TestAPageMayReadEveryHeaderOfAnAnswer(t *testing.T) {
	const want = "Deprecation, ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After, Sunset, " +
		"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-ID, X-Trace-ID"
	if got := corsAnswer(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
