// Package replica keeps a copy of a registry in a directory.
//
// # Data
//
// The directory has one bbolt file, copy.db. Its buckets:
//
//   - assets: the key is the id, 16 bytes. The value has the position of the newest change,
//     one byte for the mode, and the entry of the feed as the registry writes it with
//     opt_fields=* and mode=_all_.
//   - feed, feed-test: the key is the position, 8 bytes, and the value is the id. The bucket
//     feed-test has the assets in test mode, and the bucket feed has all others.
//   - segments: the hashes of the snapshot files that are already in the copy. The bucket is
//     empty again once the copy has all files of the snapshot.
//   - state: one State as JSON.
//
// # Invariants
//
//   - K1, agreement. Each asset has exactly one entry in its feed, at its position, and the
//     feeds have no other entries. Check verifies this.
//   - K2, no loss. If State.Loading is false, the copy has each asset whose newest
//     change is at or before State.Position, in that state or a later one.
//   - K3, forward. An asset is never replaced by an earlier state.
//   - K4, one set of data. All entries come from the data that State.Position.ServerID
//     names.
//   - K5, atomic. Entries, the hashes of the files that they come from, and the
//     position change in one transaction. So the process may be killed at any moment.
//   - K6, bounded. Memory does not grow with the number of assets.
//
// K2 also holds if the files come from several snapshots. Once the copy has all files of one
// snapshot, it has all assets of this snapshot. The position of the snapshot then becomes the
// position of the copy (docs/snapshot.md, S1). If two snapshots share a file, the file is read
// only once.
//
// # Failures
//
//   - The process is killed, the registry is down, or the disk is full: another run continues.
//     It does not read again the snapshot files that are already in the copy.
//   - A file of the snapshot is gone: the newest snapshot is used instead.
//   - A file of the snapshot is damaged: nothing from this file is stored (client.ErrSegment).
//   - The registry has other data: nothing is stored, and the error is ErrOtherData.
//   - The copy is damaged: boltfile refuses it, and Check finds entries that disagree.
package replica
