// Package clients tests the clients of the registry: the Go client, the Python client,
// and the TypeScript client in Node and in Chromium.
//
// Each client runs the same scenario against `registry serve --sandbox`. A proxy between them injects faults. The
// scenario reports each step, and the test compares the reports of every client with the same list.
//
// Each client also talks to a hostile server, which answers as proxies and faulty servers do: with wrong lengths,
// endless bodies, redirects, or odd values of Retry-After. The programs in the guide "Recovery and large loads" of
// the documentation page are each run twice.
//
// If the runtime of a client is not installed, the client's test is skipped. If CI is set, the test fails instead.
package clients
