package mongostore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"asset-registry/assetsvc/internal/registry"
)

// logHeader is the length of the revision and the position before a Change.
const logHeader = 8 + 8

// newLog returns the log entries of changes, by slot. An entry is the revision
// and the position (8 bytes each, big-endian) and the Change. One binary value
// decodes faster than a document of three. A change without a Change has none.
func newLog(changes ...registry.Revision) map[string][]byte {
	log := map[string][]byte{}
	for _, c := range changes {
		if len(c.Change) > 0 {
			header := binary.BigEndian.AppendUint64(nil, uint64(c.Revision))
			header = binary.BigEndian.AppendUint64(header, uint64(c.Position))
			log[fmt.Sprint(c.Revision%registry.MaxLog)] = append(header, c.Change...)
		}
	}
	return log
}

// Log returns the kept changes of an asset, the newest first, or
// registry.ErrNotFound.
func (s *Store) Log(ctx context.Context, id string) ([]registry.Revision, error) {
	found, err := s.find(ctx, id, only("revision", "log"))
	if err != nil {
		return nil, err
	}
	return found.log()
}

// log returns the changes of the newest registry.MaxLog revisions. It skips
// older ones: they stay in their slot if a fence made the revision that would
// have replaced them.
func (d document) log() ([]registry.Revision, error) {
	var kept []registry.Revision
	for slot, entry := range d.Log {
		if len(entry) < logHeader {
			return nil, fmt.Errorf("slot %s of the log of asset %s is too short", slot, d.ID)
		}
		r := registry.Revision{
			Revision: int64(binary.BigEndian.Uint64(entry)),
			Position: int64(binary.BigEndian.Uint64(entry[8:])),
			Change:   entry[logHeader:],
		}
		if r.Revision > d.Revision-registry.MaxLog {
			kept = append(kept, r)
		}
	}
	slices.SortFunc(kept, func(a, b registry.Revision) int { return cmp.Compare(b.Revision, a.Revision) })
	return kept, nil
}
