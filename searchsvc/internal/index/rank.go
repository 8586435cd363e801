package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"asset-registry/searchsvc/internal/search"
)

// rank is the place of an asset in an order of hits. Higher ones come first.
type rank struct {
	key int64 // the score or the time of publication; 0: the order has none
	at  int64 // the position
}

func (a rank) isBefore(b rank) bool { return a.key > b.key || a.key == b.key && a.at > b.at }

// direction returns -1 for the orders whose lowest values come first, else 1. Ranks are
// multiplied by it.
func direction(sort search.Sort) int64 {
	if sort == search.OldestFirst || sort == search.FirstPublished {
		return -1
	}
	return 1
}

// place is a found asset in the order of hits.
type place struct {
	rank
	*part
	number uint32
}

// cursor returns the cursor of the page after the place.
func (p place) cursor(sort search.Sort) *search.Cursor {
	sign := direction(sort)
	return &search.Cursor{Sort: sort, Key: sign * p.key, At: sign * p.at}
}

func comparePlaces(a, b place) int { return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(b.at, a.at)) }

// rank returns the places of the page, and one more if there is one.
func (v *view) rank(ctx context.Context, q *plan, matches []match) ([]place, error) {
	if q.Limit == 0 {
		return nil, nil
	}
	sign := direction(q.Sort)
	r := ranking{
		after:  rank{math.MaxInt64, math.MaxInt64},
		firsts: firsts[place]{most: q.Limit + 1, compare: comparePlaces},
	}
	if q.After != nil {
		r.after = rank{sign * q.After.Key, sign * q.After.At}
	}
	var weigh []int64
	if q.Sort == search.ByRelevance {
		weigh = weights(matches, len(q.words), v.assets)
	}
	for i := range matches {
		m := &matches[i]
		keys, free, err := m.keys(ctx, q, weigh)
		if err != nil {
			return nil, err
		}
		err = each(ctx, m.found, func(numbers []uint32) { r.offer(m.part, keys, sign, numbers) })
		free()
		if err != nil {
			return nil, err
		}
	}
	return r.sorted(), nil
}

// ranking keeps the places of a page.
type ranking struct {
	after rank // places up to it are left out
	firsts[place]
}

// offer takes assets of a part. Newer ones often have higher numbers, so it begins with those.
func (r *ranking) offer(p *part, keys []int64, sign int64, numbers []uint32) {
	last, full := r.last()
	for _, n := range slices.Backward(numbers) {
		at := rank{at: sign * p.positions[n]}
		if keys != nil {
			at.key = sign * keys[n]
		}
		if full && !at.isBefore(last.rank) || !r.after.isBefore(at) {
			continue
		}
		r.firsts.offer(place{rank: at, part: p, number: n})
		last, full = r.last()
	}
}

// keys returns the keys of the assets of a part by their numbers; nil if the order has none.
// The caller calls free after use.
func (m *match) keys(ctx context.Context, q *plan, weigh []int64) (keys []int64, free func(), err error) {
	free = func() {}
	switch q.Sort {
	case search.ByRelevance:
		return m.scores(ctx, q, weigh)
	case search.LatestPublished, search.FirstPublished:
		return m.published, free, nil
	}
	return nil, free, nil
}

var scorePool pool[int64]

// scores adds the weights of the words that the titles of the found assets have. All assets
// have all words somewhere.
func (m *match) scores(ctx context.Context, q *plan, weigh []int64) (scores []int64, free func(), err error) {
	scores, free = scorePool.zeros(int(m.count))
	for w, c := range q.words {
		titles, err := m.having(condition{titleField, c.terms})
		if err == nil {
			titles.And(m.found)
			err = each(ctx, titles, func(numbers []uint32) {
				for _, n := range numbers {
					scores[n] += weigh[w]
				}
			})
		}
		if err != nil {
			free()
			return nil, nil, err
		}
	}
	return scores, free, nil
}

// firsts keeps the first values of an order. It sorts a few at a time, because it may be
// offered as many values as there are assets.
type firsts[T any] struct {
	most    int
	compare func(a, b T) int
	kept    []T  // the first of those that were sorted, then further ones
	full    bool // most of kept are sorted
	offered int
}

// last returns the last value that is kept. It is ok to offer no value after it.
func (f *firsts[T]) last() (value T, ok bool) {
	if !f.full {
		return value, false
	}
	return f.kept[f.most-1], true
}

func (f *firsts[T]) offer(value T) {
	f.offered++
	if f.full && f.compare(value, f.kept[f.most-1]) > 0 {
		return
	}
	if f.kept = append(f.kept, value); len(f.kept) >= 2*f.most {
		f.sorted()
	}
}

func (f *firsts[T]) sorted() []T {
	slices.SortFunc(f.kept, f.compare)
	f.full = len(f.kept) >= f.most
	f.kept = f.kept[:min(len(f.kept), f.most)]
	return f.kept
}

// pool is memory for numbers, all zero.
type pool[T any] struct{ of sync.Pool }

// zeros returns n zeros, and what gives them back.
func (p *pool[T]) zeros(n int) (zeros []T, free func()) {
	kept, ok := p.of.Get().(*[]T)
	if !ok {
		kept = new([]T)
	}
	if cap(*kept) < n {
		*kept = make([]T, n+n/4)
	}
	zeros = (*kept)[:n]
	return zeros, func() {
		clear(zeros)
		p.of.Put(kept)
	}
}
