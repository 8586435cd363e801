package file

import (
	"context"
	"fmt"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// MaxList is the most files that a call of List returns.
const MaxList = 100

// MaxRemoved is the most ids that a call of ListRemoved returns.
const MaxRemoved = 1000

// ListRemoved returns the ids of at most limit files that were taken down, in their order, those that
// are greater than after. Next is as in List. A removal that was acknowledged is in it. Everybody may
// know them: a removed file is one whoever asks.
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

// lookedAt is the most files that a call of List looks at: those of one broker lie between those of
// others.
const lookedAt = 5 * page

// List returns at most limit files whose ids are greater than after, in the order of ids: those of
// the caller's broker; for an administrator all, or those of one broker. Next is the id after which
// another call goes on; "": there are no more. A list may be short, or empty, and have a next.
// Faults: Forbidden for files of another broker.
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
		files, err := s.files.Page(ctx, after, page)
		if err != nil {
			return nil, "", fmt.Errorf("list files: %w", err)
		}
		for _, f := range files {
			after = f.ID
			if f.State == Collected || broker != "" && f.Broker != broker {
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
