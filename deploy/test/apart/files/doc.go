// Package files tests files in an object store that others wrote: a registry process that uses a bucket, moves of
// the files to the bucket and back, and a store that is killed, full or unreachable (docs/files.md, "A bucket").
package files
