// Package search tests the search service as its clients see it: the words of Ukrainian
// against a dictionary, kills, hidden assets, hostile questions, and figures (make
// test-search, make bench-search).
package search
