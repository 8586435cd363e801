package file

import (
	"sync/atomic"

	"asset-registry/shared/fault"
)

// Counts counts the uploads of a process by their end, and the files that it has collected.
type Counts struct {
	Stored  atomic.Int64
	Refused atomic.Int64 // the client heard why
	Full    atomic.Int64 // there was no room
	Failed  atomic.Int64

	Collected atomic.Int64
}

// count counts an upload that has ended with err.
func (c *Counts) count(err error) {
	switch kind := fault.KindOf(err); {
	case err == nil:
		c.Stored.Add(1)
	case kind == fault.Full:
		c.Full.Add(1)
	case kind == fault.Internal || kind == fault.Unavailable:
		c.Failed.Add(1)
	default:
		c.Refused.Add(1)
	}
}
