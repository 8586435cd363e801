package mongostore

import "context"

const (
	// maxNumbers is the most numbers that a process reserves at once. The
	// numbers left when it ends are never used.
	maxNumbers = 64
	// maxDays is the most days for which it holds numbers.
	maxDays = 7
)

// numbers gives out the numbers of assets. Each time it runs out it reserves
// twice as many as before. So a busy day costs few round trips, and a process
// that creates few assets skips few numbers.
type numbers struct {
	take func(ctx context.Context, day string, count int) (first int, err error)
	turn chan struct{} // a lock of have that ends waiting with a context
	have map[string]stock
}

// stock is the numbers that a process holds for a day.
type stock struct {
	next, left int
	taken      int // reserved the last time
}

func newNumbers(take func(ctx context.Context, day string, count int) (int, error)) *numbers {
	return &numbers{take: take, turn: make(chan struct{}, 1), have: map[string]stock{}}
}

func (n *numbers) next(ctx context.Context, day string) (int, error) {
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	stocked := n.have[day]
	if stocked.left == 0 {
		count := min(max(1, 2*stocked.taken), maxNumbers)
		first, err := n.take(ctx, day, count)
		if err != nil {
			return 0, err
		}
		stocked = stock{next: first, left: count, taken: count}
		if len(n.have) > maxDays {
			clear(n.have)
		}
	}
	number := stocked.next
	n.have[day] = stock{next: number + 1, left: stocked.left - 1, taken: stocked.taken}
	return number, nil
}

// NextNumber returns a number for an asset created on day.
func (s *Store) NextNumber(ctx context.Context, day string) (int, error) {
	return s.numbers.next(ctx, day)
}
