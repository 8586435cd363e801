// Package files tests the registry with an object store, which is a program by other authors (docs/files.md,
// "A bucket"). A registry process uses a bucket, files move to the bucket and back, and the store is killed, full
// or unreachable.
package files
