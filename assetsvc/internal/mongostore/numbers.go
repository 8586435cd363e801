package mongostore

import "context"

const (
	// maxNumbers is the largest count of numbers in one reservation. Numbers that are reserved but not used when
	// the process ends are never used.
	maxNumbers = 64
	// maxDays limits the days for which a process keeps reserved numbers. If it has more, a new reservation drops all.
	maxDays = 7
)

// numbers reserves numbers of assets and gives them out. Each reservation for a day is twice as large as the
// previous one, up to maxNumbers. So a busy day costs few round trips, and a process that creates few assets leaves
// few numbers unused.
type numbers struct {
	take func(ctx context.Context, day string, count int) (first int, err error)
	turn chan struct{} // locks the field `have`; a caller waits for the lock until its context ends
	have map[string]stock
}

// stock has the numbers that a process has reserved for a day.
type stock struct {
	next, left int
	taken      int // count of numbers in the last reservation
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
