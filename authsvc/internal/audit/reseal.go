package audit

import (
	"context"
	"fmt"
	"strings"

	"asset-registry/shared/adminapi"
)

// Reseal seals all entries with the current secret, so that operators can remove
// the former secrets. It returns the number of entries whose seal it replaced.
// Reseal fails without a change if the log has problems. It may be repeated.
func (c *Checker) Reseal(ctx context.Context) (resealed int, err error) {
	found, err := c.Check(ctx)
	if err != nil {
		return 0, err
	}
	if len(found.Problems) > 0 {
		return 0, fmt.Errorf("reseal audit log: the log has problems: %s", strings.Join(found.Problems, "; "))
	}
	for after := int64(0); ; {
		entries, err := c.log.Entries(ctx, after, page)
		if err != nil {
			return resealed, fmt.Errorf("reseal audit log: %w", err)
		}
		var changed []adminapi.Entry
		for _, e := range entries {
			after = e.Seq
			// An entry with a faulty seal was added after the check. It stays unchanged.
			if c.sealer.current(e) || c.sealer.fault(e) != "" {
				continue
			}
			e.Seal = c.sealer.seal(e.Hash)
			changed = append(changed, e)
		}
		if err := c.log.Reseal(ctx, changed); err != nil {
			return resealed, fmt.Errorf("reseal audit log: %w", err)
		}
		resealed += len(changed)
		if len(entries) < page {
			return resealed, nil
		}
	}
}
