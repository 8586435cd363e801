// SPDX-License-Identifier: Apache-2.0

// Package client is the Go client of the asset registry. It uses the standard
// library only.
//
//	registry, err := client.New(client.Config{URL: "https://registry.example", Key: "..."})
//	created, err := registry.Create(ctx, client.Asset{AssetType: "bounce", Title: "..."})
//
// A Client is safe for concurrent use.
//
// # Fields
//
// Asset and the structs in it have every field of version 2.5 of the API. A zero
// field is absent: it is not sent. Unknown keeps the fields of a newer registry,
// so an asset that is read and replaced loses none. Fields is a change: it sends
// the named fields only, and null for nil, which clears a field.
//
// Decimal, Scalar and Timestamp hold text as the registry writes it, so no digit is
// lost.
//
// # Retries
//
// Before a retry the client waits as Retry-After says, or without it in growing pauses, always with jitter,
// within Config.Retry (docs/contract.md, "Overload", "Idempotency" and "Conditional requests"):
//
//   - A try that surely did nothing is repeated, whatever the request: the answer is
//     429, or there was no connection.
//   - A try with an unknown end is repeated if a repeat does no harm: the answer is
//     502, 503 or 504, or the connection broke. This holds for all reads; Create,
//     which sends an Idempotency-Key; CreateTransfer, because an unused transfer
//     ends by itself; the file of Documents.Upload, because the registry removes an unused file;
//     TakeOver, which the registry lets anyone repeat; and every write with
//     Write.IfMatch.
//   - Other writes are not repeated. A write that was answered with 503 was either
//     done or not: read the asset, then decide.
//
// If the first try of a write with IfMatch was done but its answer got lost, the repeat gets 412. This error
// has Uncertain set.
//
// Follow with Feed.Live opens a stream again for as long as its loop goes on. Before each new stream it waits
// as the registry's retry and Retry-After say, or without them in growing pauses. After Retry.Tries failures
// in a row it yields the error (docs/contract.md, "Streams").
//
// After a broken connection, Segment asks only for the missing bytes of the file, for as long as tries
// bring more of them.
//
// # Errors
//
// An answer with an error status is an *Error. No error holds a key or a token.
package client
