package edge

import "testing"

// TestAPageMayReadEveryHeaderOfAnAnswer compares the whole list, because it
// contains header names of other packages.
func TestAPageMayReadEveryHeaderOfAnAnswer(t *testing.T) {
	const want = "Accept-Ranges, Age, Content-Range, Deprecation, ETag, Link, Location, RateLimit, RateLimit-Policy, " +
		"Registry-Ignored, Retry-After, Sunset, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, " +
		"X-Trace-Id"
	if got := corsAnswer(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
