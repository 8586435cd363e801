// Package files tests files in an object store that others wrote: the registry as a process on a bucket, the
// way of the files there and back, and a store that is killed, full or away (docs/files.md, "A bucket").
package files
