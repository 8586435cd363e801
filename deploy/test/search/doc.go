// Package search tests the search service as its clients see it: kills, hidden assets,
// hostile questions, and figures (make test-search, make bench-search).
package search
