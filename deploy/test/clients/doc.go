// Package clients tests the clients of the registry: the Go client, the Python client,
// and the TypeScript client in Node and in Chromium.
//
// Each client runs the same scenario against `registry serve --sandbox`. Between them
// stands a proxy, which injects faults. The scenario reports each step, and the test
// compares the reports with one list.
//
// Each client also meets a hostile server, which answers as proxies and faulty servers do: wrong
// lengths, endless bodies, redirects, times of Retry-After. The programs of the guide "Recovery and large
// loads" of the documentation page are run twice each.
//
// A test of a client is skipped if its runtime is not installed. With CI set, that is a
// failure.
package clients
