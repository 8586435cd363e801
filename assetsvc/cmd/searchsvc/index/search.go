package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"asset-registry/assetsvc/cmd/searchsvc/search"
	"asset-registry/shared/fault"
)

// errLate is returned for a search that takes too long.
var errLate = fault.New(fault.Unavailable, fault.URL, "search", "The search takes too long; use fewer or rarer words.")

// search answers a question from the view.
func (v *view) search(ctx context.Context, q search.Query) (search.Result, error) {
	p := newPlan(q)
	result := search.Result{Position: v.position}
	var matches []match
	for i := range v.parts {
		if ctx.Err() != nil {
			return search.Result{}, errLate
		}
		m, err := v.parts[i].match(ctx, &p)
		if err != nil {
			return search.Result{}, orLate(err)
		}
		result.Total += int64(m.found.GetCardinality())
		matches = append(matches, m)
	}
	best, err := v.rank(ctx, &p, matches)
	if err != nil {
		return search.Result{}, orLate(err)
	}
	if len(best) > q.Limit && q.Limit > 0 { // rank returns one more, if there is one
		best = best[:q.Limit]
		last := best[len(best)-1]
		result.Next = &search.Cursor{Sort: q.Sort, Key: last.key, At: last.at}
	}
	for _, place := range best {
		hit, err := place.hit()
		if err != nil {
			return search.Result{}, err
		}
		result.Hits = append(result.Hits, hit)
	}
	for _, name := range q.Facets {
		facet, err := v.facet(ctx, &p, name, matches)
		if err != nil {
			return search.Result{}, orLate(err)
		}
		result.Facets = append(result.Facets, facet)
	}
	return result, nil
}

func orLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errLate
	}
	return err
}

// place is a found asset in the order of hits.
type place struct {
	*part
	number uint32
	key    int64 // what the order compares first (search.Cursor)
	at     int64
}

// order returns the comparison of two places: negative if the first one comes first.
func order(sort search.Sort) func(a, b place) int {
	switch sort {
	case search.OldestFirst:
		return func(a, b place) int { return cmp.Compare(a.at, b.at) }
	case search.FirstPublished:
		return func(a, b place) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) }
	default: // the key of NewestFirst is 0
		return func(a, b place) int { return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(b.at, a.at)) }
	}
}

// rank returns the places of the page, and one more if there is one.
func (v *view) rank(ctx context.Context, q *plan, matches []match) ([]place, error) {
	if q.Limit == 0 {
		return nil, nil
	}
	top := newTop(q.Limit+1, order(q.Sort))
	if q.After != nil {
		top.after = &place{key: q.After.Key, at: q.After.At}
	}
	var weigh []int64
	if q.Sort == search.ByRelevance {
		weigh = weights(matches, len(q.words), v.assets)
	}
	for i := range matches {
		m := &matches[i]
		scores, err := m.scores(ctx, q, weigh)
		if err != nil {
			return nil, err
		}
		byPublication := q.Sort == search.LatestPublished || q.Sort == search.FirstPublished
		err = each(ctx, m.found, func(n uint32) {
			p := place{part: m.part, number: n, at: m.positions[n]}
			switch {
			case scores != nil:
				p.key = int64(scores.of[n])
			case byPublication:
				p.key = m.published[n]
			}
			top.offer(p)
		})
		scores.free(m.found)
		if err != nil {
			return nil, err
		}
	}
	return top.sorted(), nil
}

// scores are the scores of the assets of a part. Zero scores are for assets without a word
// in their titles.
type scores struct{ of []int32 }

var scorePool = sync.Pool{New: func() any { return &scores{} }}

// scores adds the weights of the words that the titles of the found assets have. All assets
// have all words somewhere. It returns nil without weights.
func (m *match) scores(ctx context.Context, q *plan, weigh []int64) (*scores, error) {
	if weigh == nil {
		return nil, nil
	}
	s := scorePool.Get().(*scores)
	if uint32(len(s.of)) < m.count {
		s.of = make([]int32, m.count)
	}
	for w, c := range q.words {
		titles, err := m.having(condition{titleField, c.terms})
		if err == nil {
			titles.And(m.found)
			err = each(ctx, titles, func(n uint32) { s.of[n] += int32(weigh[w]) })
		}
		if err != nil {
			s.free(m.found)
			return nil, err
		}
	}
	return s, nil
}

// free makes the scores of a set zero, so that the memory can be used again.
func (s *scores) free(set *roaring.Bitmap) {
	if s == nil {
		return
	}
	_ = each(context.Background(), set, func(n uint32) { s.of[n] = 0 }) // only ctx fails
	scorePool.Put(s)
}

// top keeps the first places of an order. It is a heap whose root is the last of them.
type top struct {
	most    int
	compare func(a, b place) int
	after   *place // places up to it are left out; nil: none
	heap    []place
}

func newTop(most int, compare func(a, b place) int) *top { return &top{most: most, compare: compare} }

func (t *top) offer(p place) {
	if len(t.heap) == t.most && t.compare(p, t.heap[0]) >= 0 {
		return
	}
	if t.after != nil && t.compare(p, *t.after) <= 0 {
		return
	}
	if len(t.heap) < t.most {
		t.heap = append(t.heap, p)
		t.up(len(t.heap) - 1)
		return
	}
	t.heap[0] = p
	t.down()
}

func (t *top) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if t.compare(t.heap[i], t.heap[parent]) <= 0 {
			return
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

func (t *top) down() {
	for i := 0; ; {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.compare(t.heap[child], t.heap[last]) > 0 {
				last = child
			}
		}
		if last == i {
			return
		}
		t.heap[i], t.heap[last] = t.heap[last], t.heap[i]
		i = last
	}
}

func (t *top) sorted() []place {
	slices.SortFunc(t.heap, t.compare)
	return t.heap
}

// hit reads the text of a hit.
func (p place) hit() (search.Hit, error) {
	var hit search.Hit
	err := p.segment.VisitStoredFields(uint64(p.number), func(field string, _ byte, value []byte, _ []uint64) bool {
		switch field {
		case idField:
			hit.ID = string(value)
		case hitField:
			hit.Asset = slices.Clone(value)
		}
		return true
	})
	if err == nil && (hit.ID == "" || len(hit.Asset) == 0) {
		err = errors.New("the text of the hit is missing")
	}
	if err != nil {
		return hit, fmt.Errorf("read a hit: %w", err)
	}
	return hit, nil
}
