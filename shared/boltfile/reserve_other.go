//go:build !linux

package boltfile

import "os"

// reserve does nothing on this system. A full disk is noticed only when a write fails.
func reserve(*os.File, int64, int64) error { return nil }
