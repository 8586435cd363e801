package answers

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// slots is the number of assets that recent remembers at most.
const slots = 1 << 16

// recent remembers which assets were asked for within about a minute. It has a slot for
// each value of a few bits of the id's hash; a slot has the newest asset only.
type recent struct {
	seed maphash.Seed
	slot [slots]atomic.Uint64 // 48 bits of the hash and 16 bits of the minute
}

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// again tells whether somebody asked for the asset in this minute or the one before. It
// notes that somebody has asked now.
func (r *recent) again(id string, now time.Time) bool {
	const bits = 16 // of the minute
	hash, minute := maphash.String(r.seed, id), uint16(now.Unix()/60)
	old := r.slot[hash%slots].Swap(hash&^(1<<bits-1) | uint64(minute))
	return old>>bits == hash>>bits && minute-uint16(old) <= 1
}
