// Package ratelimit limits how much of the registry each client uses
// (docs/contract.md, "Rate limits").
//
// A table of policies gives every class of request a cost, and limits the costs
// in any window of time: by client address without an API key, by key and by
// tenant with one. A policy that counts bytes takes the size of a write's body
// before the body is read, from its Content-Length. A body without that header
// counts once it has been read, and is refused if too little is left.
//
// # The library, and Take beside it
//
// Where one rate of one key is enough, as for wrong API keys, the Limiter of
// ulule/limiter decides, on our stores. A request has up to seven windows: three
// policies of two or more. It must take from all of them or from none, in one
// round trip; the library takes from one, and a refusal by the second window
// would leave the first one charged. Its own stores count in fixed windows, so
// up to twice the limit passes where two windows meet. Hence Store.Take.
//
// # Guarantees
//
// No window ever admits more than the limit, over all gateways that share a
// Redis. This comes before fairness and speed. A window is divided into slots,
// and a cost counts until its whole slot has left the window.
//
// Redis lends tokens in advance, so a busy client costs a round trip now and
// then, not one a request. Lent tokens count as used from the moment of the loan
// until one window after the loan ends, so loans never admit more than the
// limit. They cost some fairness: tokens that one gateway holds and does not need
// are missing at the others until its next call to Redis, at most for a window
// and a quarter. Therefore a loan is at most a sixteenth of the limit and half
// of what is left, lasts a quarter of the shortest window, and shrinks to what
// the last loan used. Near the limit gateways borrow tokens one by one.
//
// A client that comes now and then has no valid loan. If the number of gateways
// is configured, they reserve an eighth of every limit, in equal shares, and each
// admits requests from its share without Redis. A client of one gateway alone
// then has less by the shares of the others.
//
// BenchmarkBorrower on two idle cores: a request that asks Redis each time takes 34
// times as long as one with loans if there is one client, and 24 times as long
// if there are 100. With loans, 1 request in 4,000 asks Redis, or 1 in 190.
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
