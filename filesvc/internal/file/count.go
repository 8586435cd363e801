package file

import (
	"errors"
	"sync/atomic"

	"asset-registry/shared/fault"
)

// Counts counts the uploads of a process by their end, the bytes of files, and the files that it has
// collected and removed.
type Counts struct {
	Stored  atomic.Int64
	Refused atomic.Int64 // the client heard why
	Quota   atomic.Int64 // the broker has too many bytes
	Full    atomic.Int64 // there was no room
	Failed  atomic.Int64

	Received atomic.Int64 // bytes of stored uploads
	Sent     atomic.Int64 // bytes of readings
	Unread   atomic.Int64 // readings of stored files whose bytes could not be opened

	Drawn   atomic.Int64 // files whose pictures were made
	Undrawn atomic.Int64 // files of which there is no picture

	Collected atomic.Int64
	Removed   atomic.Int64 // by an administrator, each file with the same bytes too
}

// errQuota marks the refusal of a broker who has too many files.
var errQuota = errors.New("the broker has too many files")

// count counts an upload of so many bytes that has ended with err.
func (c *Counts) count(bytes int64, err error) {
	switch kind := fault.KindOf(err); {
	case err == nil:
		c.Stored.Add(1)
		c.Received.Add(bytes)
	case errors.Is(err, errQuota):
		c.Quota.Add(1)
	case kind == fault.Full:
		c.Full.Add(1)
	case kind == fault.Internal || kind == fault.Unavailable:
		c.Failed.Add(1)
	default:
		c.Refused.Add(1)
	}
}
