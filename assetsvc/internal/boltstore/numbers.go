package boltstore

import (
	"maps"
	"sync"

	"go.etcd.io/bbolt"
)

// numbers gives out the numbers of assets, day by day. They become durable with
// the next write, so that no asset can be stored with a number that is not;
// those that no asset carries yet when the process ends are given out anew.
type numbers struct {
	mu    sync.Mutex
	given map[string]int // newest number of a day, as far as not durable
}

// next returns the number after the newest of day; stored returns the newest
// that is durable.
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

// save writes what has been given out into a transaction, and returns it for forget.
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

// forget lets go of the days that are durable up to their newest number.
func (n *numbers) forget(saved map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.given, func(day string, number int) bool { return number == saved[day] })
}
