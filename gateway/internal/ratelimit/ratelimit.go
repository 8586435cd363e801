// Package ratelimit limits how much of the registry each client uses
// (docs/contract.md, "Rate limits").
//
// A table of policies gives every class of request a cost, and limits the costs in any window of time. Requests
// without an API key count for their address, requests with a key for this key and for its tenant. A policy
// that counts bytes takes the size of a write's body from the Content-Length, before the body is read. A body
// without this header is counted when it has been read, and is refused if too little is left.
//
// # The library, and Take beside it
//
// For wrong API keys, one rate of one key at a time is enough. There the Limiter of ulule/limiter decides, with
// our stores. Other requests have up to seven windows: three policies with two or more each. A request must
// take from all of them or from none, in one round trip. The library takes from one at a time, so after a
// refusal by the second window the first one would already be charged. The stores of the library also count in
// fixed windows, so around the moment between two windows up to twice the limit passes. This is why Store.Take
// exists.
//
// # Guarantees
//
// No window ever admits more than the limit, counted over all gateways that share a Redis. This is more
// important than fairness and speed. A window is divided into slots, and a cost counts until its whole slot has
// left the window.
//
// Redis lends tokens in advance, so the requests of a busy client rarely need a round trip. Lent tokens count
// as used from the moment of the loan until one window after the loan's end, so loans never admit more than the
// limit. But they are less fair: tokens that one gateway holds and does not need are missing at the others
// until its next call to Redis, at most for one and a quarter windows. Therefore a loan is at most a sixteenth
// of the limit and half of what is left, lasts a quarter of the shortest window, and shrinks to what was used
// of the last loan. Near the limit, gateways borrow tokens one by one.
//
// A client that rarely sends requests has no valid loan. If the number of gateways is configured, they reserve
// an eighth of every limit and share it equally. Each admits requests from its share without Redis. The limit
// of a client that uses only one gateway is then lower by the shares of the others.
//
// BenchmarkBorrower was run on two idle cores. For one client, a request that asks Redis takes 34 times as long
// as one with loans; for 100 clients, 24 times as long. With loans and one client, 1 request in 4,000 asks
// Redis; with 100 clients, 1 in 190.
//
// # Limits of the guarantees
//
//   - If Redis loses its data, each gateway still keeps to the limit by itself,
//     but they do not know of each other.
//   - While Redis is down, with the fallback "local", each gateway counts up to
//     its share, and reports it when Redis is back. The window in which Redis goes
//     down may admit up to twice the limit if load moves between gateways.
//   - The clock of Redis is trusted, except when it steps back.
//   - All gateways on one Redis must have the same table.
//   - A refusal takes its waiting time from this gateway's counts and Redis's last
//     answer. If other gateways have made the wait longer, the next refusal says so.
package ratelimit
