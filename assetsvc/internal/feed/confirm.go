package feed

import (
	"slices"
	"time"
)

// MaxAhead is the largest lead of the store's clock over a clock that confirms it.
const MaxAhead = time.Second

// Confirmed reports whether a store's time that is more than MaxAhead ahead of a machine's own time is right
// nevertheless. It is if two witnesses have come as far: the median of the machine and its peers, and `last`. `last` is no
// witness alone: all writers follow a clock that drifts ahead for its first second, and take `last` with it. Peers are
// none alone: one of them may be the machine of the store.
func Confirmed(store, own time.Time, peers []time.Time, last int64) bool {
	all := append(slices.Clone(peers), own)
	slices.SortFunc(all, time.Time.Compare)
	return store.Sub(all[len(all)/2]) <= MaxAhead && store.Sub(time.UnixMicro(last)) <= MaxAhead
}
