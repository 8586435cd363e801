// Package search tests the search service from outside: kills, hidden assets, hostile queries, and measurements
// (make test-search, make bench-search).
package search
