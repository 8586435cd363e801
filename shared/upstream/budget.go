package upstream

import "sync/atomic"

// A retry costs as much as ten requests earn.
const (
	retryCost = 10  // tenths of a retry
	maxBudget = 100 // tenths of a retry that a new budget has; no budget has more
)

// retryBudget allows one retry for ten requests.
type retryBudget struct {
	tenths atomic.Int64 // tenths of a retry that are left
}

func (b *retryBudget) earn() {
	if b.tenths.Load() < maxBudget {
		b.tenths.Add(1)
	}
}

// spend pays for a retry. It returns false if too little is left.
func (b *retryBudget) spend() bool {
	for {
		has := b.tenths.Load()
		if has < retryCost {
			return false
		}
		if b.tenths.CompareAndSwap(has, has-retryCost) {
			return true
		}
	}
}
