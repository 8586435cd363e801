package admin

import (
	"context"
	"fmt"
	"strings"

	"asset-registry/shared/adminapi"
)

// Reseal seals all entries of the audit log with the current secret, so that the
// former ones are needed no more, and returns how many were sealed with another.
// It changes nothing if the log has problems. It may be repeated.
func (s *Service) Reseal(ctx context.Context) (resealed int, err error) {
	found, err := s.Check(ctx)
	if err != nil {
		return 0, err
	}
	if len(found.Problems) > 0 {
		return 0, fmt.Errorf("the audit log is not sealed anew, for it is not in order: %s", strings.Join(found.Problems, "; "))
	}
	for after := int64(0); ; {
		entries, err := s.store.Entries(ctx, after, checkPage)
		if err != nil {
			return resealed, fmt.Errorf("seal audit log anew: %w", err)
		}
		var anew []adminapi.Entry
		for _, e := range entries {
			after = e.Seq
			if s.sealer.current(e) || s.sealer.fault(e) != "" { // a fault: of an entry that is newer than the check
				continue
			}
			e.Seal = s.sealer.seal(e.Hash)
			anew = append(anew, e)
		}
		if err := s.store.Reseal(ctx, anew); err != nil {
			return resealed, fmt.Errorf("seal audit log anew: %w", err)
		}
		resealed += len(anew)
		if len(entries) < checkPage {
			return resealed, nil
		}
	}
}
