// Package ratelimit limits how much of the registry each client uses
// (docs/contract.md, "Rate limits").
//
// A table of policies gives every class of request a cost, and limits the sum of the costs in any window of time. A
// request without an API key counts for its address. A request with a key counts for this key and for its tenant. A
// policy that counts bytes takes the size of a write's body from the Content-Length, before the body is read.
// Without this header, a body is counted after it is read, and is refused if too little is left.
//
// # The library, and Take beside it
//
// Wrong API keys are counted for an address, one window at a time. A Limiter of ulule/limiter is enough for
// this. It keeps its counts in our stores. Any other request has up to seven windows: three policies with two or
// more each. A request must take from all of them or from none, in one round trip. The library takes from one
// window at a time. If the second window refused, the first one would already be charged. The stores of the
// library also count in fixed windows. So around the end of a window, up to twice the limit passes. This is why
// Store.Take exists.
//
// # Guarantees
//
// No window ever admits more than the limit, counted over all gateways that share a Redis. This is more
// important than fairness and speed. A window is divided into slots, and a cost counts until its whole slot has
// left the window.
//
// Redis lends tokens in advance, so the requests of a busy client rarely need a round trip. Lent tokens count
// as used from the moment of the loan until one window after the loan's end, so loans never admit more than the
// limit. But loans are less fair. If one gateway holds tokens that it does not need, the others cannot use them
// until its next call to Redis. This takes at most one and a quarter windows. Therefore a loan is at most a
// sixteenth of the limit and half of the tokens that are left. It lasts a quarter of the shortest window. If
// some tokens of a loan were not used, the next loan is only as large as the used part. Near the limit, gateways
// borrow tokens one by one.
//
// A client that rarely sends requests has no valid loan. If the number of gateways is configured, they reserve
// an eighth of every limit and share it equally. Each gateway admits requests from its share without Redis. A
// client that uses only one gateway then has a lower limit: the shares of the other gateways are missing.
//
// BenchmarkBorrower was run on two idle cores. For one client, a request that asks Redis takes 34 times as long
// as one with loans; for 100 clients, 24 times as long. With loans and one client, 1 request in 4,000 asks
// Redis; with 100 clients, 1 in 190.
//
// # Limits of the guarantees
//
//   - If Redis loses its data, each gateway still keeps to the limit by itself,
//     but it does not know what the others have admitted.
//   - While Redis is down, with the fallback "local", each gateway admits costs up
//     to its share. It reports these costs when Redis is back. The window in which
//     Redis goes down may admit up to twice the limit if load moves between gateways.
//   - The clock of Redis is trusted, except when it steps back.
//   - All gateways on one Redis must have the same table.
//   - A refusal takes its waiting time from this gateway's counts and Redis's last
//     answer. If other gateways have made the wait longer, the next refusal says so.
package ratelimit
