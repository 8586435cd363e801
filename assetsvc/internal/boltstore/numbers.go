package boltstore

import (
	"maps"
	"sync"

	"go.etcd.io/bbolt"
)

// numbers gives out the numbers of assets, counted for each day. A number
// becomes durable with the next write, so a stored asset never has a number
// that is not durable. If the process ends first, the next process gives out
// the numbers that no asset carries again.
type numbers struct {
	mu    sync.Mutex
	given map[string]int // day -> newest number, only of days with numbers that are not durable
}

// next returns the number after the newest one of day. It calls stored for the
// newest durable number if it knows none.
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

// save writes the numbers given out into a transaction. It returns them, for
// forget.
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

// forget removes the days whose newest number is saved. Call it once the
// transaction of save is durable.
func (n *numbers) forget(saved map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.given, func(day string, number int) bool { return number == saved[day] })
}
