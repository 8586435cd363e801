// Package replica keeps a copy of a registry in a directory.
//
// # Data
//
// The directory has one bbolt file, copy.db. Its buckets:
//
//   - assets: by id, 16 bytes, the position of the newest change, one byte for the mode,
//     and the entry of the feed as the registry writes it with opt_fields=* and
//     mode=_all_.
//   - feed, feed-test: by position, 8 bytes, the id. The second has the assets in test
//     mode, the first all others.
//   - segments: the hashes of the files of a snapshot that are in the copy, until all
//     are.
//   - state: one State as JSON.
//
// # Invariants
//
//   - K1, agreement. Each asset has one entry in its feed, at its position, and
//     nothing else has one. Check reads it.
//   - K2, no loss. If State.Loading is false, the copy has each asset whose newest
//     change is at or before State.Position, in that state or a later one.
//   - K3, forward. An asset is never replaced by an earlier state.
//   - K4, one set of data. All entries come from the data that State.Position.ServerID
//     names.
//   - K5, atomic. Entries, the hashes of the files that they come from, and the
//     position change in one transaction. So a process may be killed at any moment.
//   - K6, bounded. Memory does not grow with the number of assets.
//
// K2 holds with files of several snapshots: once each file of one snapshot is in the
// copy, the copy has everything that this snapshot has, and the position becomes the
// snapshot's (docs/snapshot.md, S1). A file that two snapshots share is read once.
//
// # Failures
//
//   - The process is killed, the registry is down, or the disk is full: another run goes
//     on. It reads no file of a snapshot that is in the copy.
//   - A file of the snapshot is gone: the newest snapshot takes its place.
//   - A file of the snapshot is damaged: nothing of it is stored (client.ErrSegment).
//   - The registry has other data: nothing is stored, and the error is ErrOtherData.
//   - The copy is damaged: boltfile refuses it, and Check finds entries that disagree.
package replica
