package index

import "syscall"

// readSingly makes the system read only those pages of a mapped file that are used. Searches use single pages in
// many places. If the system also read the pages around them, it would fill the memory with pages that no search
// needs.
func readSingly(mapped []byte) error { return syscall.Madvise(mapped, syscall.MADV_RANDOM) }
