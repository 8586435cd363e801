package file

import (
	"errors"
	"sync/atomic"

	"asset-registry/shared/fault"
)

// Counts has the counts of this process: uploads by result, received and sent bytes of files, and collected and
// removed files.
type Counts struct {
	Stored  atomic.Int64
	Refused atomic.Int64 // uploads that were refused with a reason for the client
	Quota   atomic.Int64 // uploads that were refused because the broker has too many files or bytes (errQuota)
	Full    atomic.Int64 // uploads that failed because the store had no room
	Failed  atomic.Int64

	Received atomic.Int64 // bytes of stored uploads
	Sent     atomic.Int64 // bytes sent to readers
	Unread   atomic.Int64 // readings of a stored file whose bytes cannot be opened, or are others

	Drawn   atomic.Int64 // files whose pictures were made
	Undrawn atomic.Int64 // files from which no picture can be made
	GivenUp atomic.Int64 // files whose drawing something else has ended too often (ErrEnded)

	Collected atomic.Int64
	Removed   atomic.Int64 // files removed by an administrator, including other files with the same bytes
}

// errQuota is the error of a refused upload: the broker has too many waiting files, or the broker's files have too
// many bytes.
var errQuota = errors.New("the broker has too many files")

// count counts an upload of the given number of bytes that ended with err.
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
