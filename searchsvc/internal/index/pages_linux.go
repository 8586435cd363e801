package index

import "syscall"

// readSingly makes the system read only those pages of a mapped file that are used, and no
// pages around them. Searches use pages here and there: with the pages around them, files
// that are larger than the memory would push each other out of it.
func readSingly(mapped []byte) error { return syscall.Madvise(mapped, syscall.MADV_RANDOM) }
