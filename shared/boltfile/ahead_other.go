//go:build !linux

package boltfile

import "os"

// willNeed does nothing on this system.
func willNeed(*os.File, int64, int64) {}
