package feed

import (
	"slices"
	"time"
)

// MaxAhead is the largest lead of the store's clock over a clock that confirms it.
const MaxAhead = time.Second

// Confirmed reports whether two witnesses have come as far as a store's time: the median of a machine and its peers,
// and the newest position, `last`. Then the store's time is right even if it is more than MaxAhead ahead of the
// machine's own. `last` is no witness alone: all writers follow a clock that drifts ahead for its first second, and
// take `last` with it. Peers are none alone: one of them may be on the machine of the store.
func Confirmed(store, own time.Time, peers []time.Time, last int64) bool {
	all := append(slices.Clone(peers), own)
	slices.SortFunc(all, time.Time.Compare)
	return store.Sub(all[len(all)/2]) <= MaxAhead && store.Sub(time.UnixMicro(last)) <= MaxAhead
}
