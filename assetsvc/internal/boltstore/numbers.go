package boltstore

import (
	"maps"
	"sync"

	"go.etcd.io/bbolt"
)

// numbers gives out the numbers of assets, which count from 1 on each day. A number becomes durable with the next
// write, so the number of a stored asset is always durable. Numbers that no stored asset has may be given out
// again after the process ends.
type numbers struct {
	mu    sync.Mutex
	given map[string]int // day -> newest number given out, for days whose newest number is not durable yet
}

// The method `next` returns the number after the newest one of the day. If n.given does not have the day, the newest
// durable number comes from the function `stored`.
func (n *numbers) next(day string, stored func() (int, error)) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, known := n.given[day]
	if !known {
		var err error
		if number, err = stored(); err != nil {
			return 0, err
		}
	}
	if n.given == nil {
		n.given = map[string]int{}
	}
	n.given[day] = number + 1
	return number + 1, nil
}

// save writes the numbers that were given out into a transaction, and returns them. The caller passes them to the
// method `forget` later.
func (n *numbers) save(bucket *bbolt.Bucket) (map[string]int, error) {
	n.mu.Lock()
	saved := maps.Clone(n.given)
	n.mu.Unlock()
	for day, number := range saved {
		if err := bucket.Put([]byte(day), positionKey(int64(number))); err != nil {
			return nil, err
		}
	}
	return saved, nil
}

// forget removes the days for which no number was given out since save. Call it once the transaction of save is
// durable.
func (n *numbers) forget(saved map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.given, func(day string, number int) bool { return number == saved[day] })
}
