package answers

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// slots is the maximum number of assets that recent remembers.
const slots = 1 << 16

// recent remembers which assets were asked for within about a minute. The hash of an asset's id selects a slot,
// and a slot remembers only the last asset.
type recent struct {
	seed maphash.Seed
	slot [slots]atomic.Uint64 // 48 bits of the hash of an id, and 16 bits of the minute
}

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// The method `again` reports whether somebody asked for the asset in this minute or in the minute before. It notes that
// somebody asks now.
func (r *recent) again(id string, now time.Time) bool {
	const bits = 16 // number of bits for the minute
	hash, minute := maphash.String(r.seed, id), uint16(now.Unix()/60)
	old := r.slot[hash%slots].Swap(hash&^(1<<bits-1) | uint64(minute))
	return old>>bits == hash>>bits && minute-uint16(old) <= 1
}
