// Package clients tests the clients of the registry: the Go client, the Python client,
// and the TypeScript client in Node and in Chromium.
//
// Each client runs the same scenario against `registry serve --sandbox`. Between them
// stands a proxy, which injects faults. The scenario reports each step, and the test
// compares the reports with one list.
//
// A test of a client is skipped if its runtime is not installed. With CI set, that is a
// failure.
package clients
