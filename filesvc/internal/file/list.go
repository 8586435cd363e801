package file

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// MaxList is the largest number of files that a call of List returns.
const MaxList = 100

// MaxRemoved is the largest number of ids that a call of ListRemoved returns.
const MaxRemoved = 1000

// ListRemoved returns ids of files that were taken down, sorted: at most `limit` ids, all greater than the argument
// `after`. The result `next` is as in List. ListRemoved sees every removal that was acknowledged before. The list
// need not be secret: a request for a removed file gets 410, so anybody can find out that it was removed.
func (s *Service) ListRemoved(ctx context.Context, after string, limit int) (ids []string, next string, err error) {
	ids, err = s.bytes.Removed(ctx, after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("list removed files: %w", err)
	}
	if len(ids) == limit {
		next = ids[len(ids)-1]
	}
	return ids, next, nil
}

// lookedAt is the largest number of files that a call of List reads. It is larger than a page, because files that are
// being deleted lie between the others.
const lookedAt = 5 * page

// List returns at most `limit` files whose ids are greater than the argument `after`, sorted by id. They are files
// of the caller's broker. An administrator gets the files of the given broker, or of all brokers if `broker` is "".
// For the files that follow, call List again with `next` as the argument `after`. If `next` is "", no more files
// follow. A list may be short, or even empty, although more files follow. Faults: Forbidden for files of another
// broker.
func (s *Service) List(ctx context.Context, by identity.Identity, broker, after string, limit int) (
	found []File, next string, err error,
) {
	if by.Role != identity.Administrator {
		if broker != "" && broker != by.Broker {
			return nil, "", fault.New(fault.Forbidden, fault.URL, "permission",
				"Forbidden: only the administrator lists files of other brokers.")
		}
		broker = by.Broker
	}
	for seen := 0; seen < lookedAt; {
		var files []File
		var err error
		if broker == "" {
			files, err = s.files.Page(ctx, after, page)
		} else {
			files, err = s.files.Own(ctx, broker, after, page)
		}
		if err != nil {
			return nil, "", fmt.Errorf("list files: %w", err)
		}
		for _, f := range files {
			after = f.ID
			if f.State == Collected {
				continue
			}
			if found = append(found, f); len(found) == limit {
				return found, after, nil
			}
		}
		if seen += len(files); len(files) < page {
			return found, "", nil
		}
	}
	return found, after, nil
}

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
