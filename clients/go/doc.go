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
// Asset and the structs in it have every field of version 2.5 of the API. The client
// does not send a field whose value is zero. Unknown keeps the fields of a newer
// registry, so no field is lost if an asset is read and replaced. Fields is a change:
// the client sends only the named fields. It sends nil as null, which clears a field.
//
// Decimal, Scalar and Timestamp hold text as the registry writes it, so no digit is
// lost.
//
// # Retries
//
// Before a retry the client waits for the time of Retry-After. Without Retry-After, the pauses grow from try to try. To
// each pause it adds jitter. Config.Retry limits the retries. These rules hold (docs/contract.md, "Overload",
// "Idempotency" and "Conditional requests"):
//
//   - If the answer is 429, or there was no connection, the try surely did nothing.
//     The client retries each such request.
//   - If the answer is 502, 503 or 504, or the connection broke, the try has an unknown
//     end. The client retries the request if a repeat does no harm. This holds for all
//     reads; Create, which sends an Idempotency-Key; CreateTransfer, because an unused
//     transfer ends by itself; the file of Documents.Upload, because the registry removes
//     an unused file; TakeOver, because the registry accepts the same call again; and
//     every write with Write.IfMatch.
//   - After an unknown end, other writes are not retried. The registry may have done
//     such a write: read the asset, then decide.
//
// If the first try of a write with IfMatch was done but its answer got lost, the repeat gets 412. The field Uncertain
// of this error is true.
//
// Follow with Feed.Live opens a new stream after each end of a stream, as long as the caller's loop goes on. Before
// each new stream it waits for the time of the registry's retry or Retry-After. Without them, the pauses grow. After
// Retry.Tries failures in a row it yields the error (docs/contract.md, "Streams").
//
// After a broken connection, Segment requests only the missing bytes of the file. It continues as long as each try
// brings more bytes.
//
// # Errors
//
// An answer with an error status is an *Error. No error holds a key or a token.
package client
