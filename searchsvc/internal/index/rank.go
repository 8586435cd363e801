package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"asset-registry/searchsvc/internal/search"
)

// rank decides the place of an asset in the order of hits. The highest rank comes first.
type rank struct {
	key int64 // the score, the time of publication or the area; 0: the order does not use a key
	at  int64 // position of the asset's last change; it decides between equal keys
}

func (a rank) isBefore(b rank) bool { return a.key > b.key || a.key == b.key && a.at > b.at }

// direction returns -1 for an order in which the lowest values come first, and 1 for other orders. Ranks are
// multiplied by it, so that the highest rank always comes first.
func direction(sort search.Sort) int64 {
	switch sort {
	case search.OldestFirst, search.FirstPublished, search.SmallestFirst:
		return -1
	}
	return 1
}

// place is a found asset with its rank.
type place struct {
	rank
	*part
	number uint32
}

// cursor returns the cursor of the page that begins after the place.
func (p place) cursor(q *plan) *search.Cursor {
	sign := direction(q.Sort)
	c := &search.Cursor{Sort: q.Sort, Key: sign * p.key, At: sign * p.at, Reading: q.reading}
	if c.Weights = q.weigh; q.literal != nil {
		c.Weights = slices.Concat(q.weigh, q.literal.weigh)
	}
	if len(c.Weights) > search.MaxWeights {
		c.Weights = nil
	}
	return c
}

func comparePlaces(a, b place) int { return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(b.at, a.at)) }

// pageBefore returns the cursor of the page that comes before the argument `page`. This argument is empty if no asset
// after the cursor q.After matches any more. The page before it then ends with the asset of q.After.
func (q *plan) pageBefore(page []place) *search.Cursor {
	var c search.Cursor
	if len(page) > 0 {
		c = *page[0].cursor(q)
	} else {
		c = *q.After
		c.At -= direction(q.Sort) // just behind the asset of q.After, because no two assets share a position
	}
	c.Back = true
	return &c
}

// rank returns the places of the page, and how many found assets come before them.
func (v *view) rank(ctx context.Context, q *plan, matches []match) (page []place, before int64, err error) {
	if q.Sort == search.ByRelevance {
		q.setWeights(matches, v.assets)
	}
	sign := direction(q.Sort)
	start := rank{math.MaxInt64, math.MaxInt64}
	if q.After != nil && q.After.Back {
		r, err := v.rankAfter(ctx, q, matches, -sign, rank{-sign * q.After.Key, -sign * q.After.At})
		if err != nil {
			return nil, 0, err
		}
		if page = r.sorted(); len(page) == q.Limit {
			slices.Reverse(page)
			for i := range page {
				page[i].rank = rank{-page[i].key, -page[i].at}
			}
			return page, r.ranked - int64(q.Limit), nil
		}
	} else if q.After != nil {
		start = rank{sign * q.After.Key, sign * q.After.At}
	}
	r, err := v.rankAfter(ctx, q, matches, sign, start)
	if err != nil {
		return nil, 0, err
	}
	return r.sorted(), r.skipped, nil
}

// setWeights sets the weights of the words: those of the first page, so that its order continues, or new ones.
func (q *plan) setWeights(matches []match, assets int64) {
	literal := q.literal
	if literal == nil {
		literal = &plan{}
	}
	n := len(q.words)
	if q.After != nil && len(q.After.Weights) == n+len(literal.words) {
		q.weigh, literal.weigh = q.After.Weights[:n], q.After.Weights[n:]
		return
	}
	q.weigh, literal.weigh = weights(matches, n, assets), weights(literal.matches, len(literal.words), assets)
}

// rankAfter ranks the places that come after a given rank. All ranks are multiplied by the argument `sign`, which
// the function `direction` returns.
func (v *view) rankAfter(ctx context.Context, q *plan, matches []match, sign int64, after rank) (*ranking, error) {
	r := &ranking{
		after: after, isNoneLast: q.Sort == search.SmallestFirst,
		firsts: firsts[place]{most: q.Limit, compare: comparePlaces},
	}
	for i := range matches {
		m := &matches[i]
		keys, free, err := m.keys(ctx, q)
		if err != nil {
			return nil, err
		}
		err = each(ctx, m.found, func(numbers []uint32) { r.offer(m.part, keys, sign, numbers) })
		free()
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// ranking collects the places of a page.
type ranking struct {
	after           rank // places with this rank or a higher one are left out
	skipped, ranked int64
	isNoneLast      bool // places with the key 0 come last
	firsts[place]
}

// offer offers assets of a segment to the ranking. It begins with the highest numbers: these assets are often
// newer, and most orders put newer assets first.
func (r *ranking) offer(p *part, keys []int64, sign int64, numbers []uint32) {
	last, full := r.last()
	for _, n := range slices.Backward(numbers) {
		at := rank{at: sign * p.positions[n]}
		if keys != nil {
			at.key = sign * keys[n]
			if at.key == 0 && r.isNoneLast {
				at.key = sign * math.MaxInt64
			}
		}
		if !r.after.isBefore(at) {
			r.skipped++
			continue
		}
		if r.ranked++; full && !at.isBefore(last.rank) {
			continue
		}
		r.firsts.offer(place{rank: at, part: p, number: n})
		last, full = r.last()
	}
}

// keys returns the keys of the assets of a segment (rank.key). The indexes are the numbers of the assets. keys returns
// nil if the order has no keys. The caller calls the function `free` after use.
func (m *match) keys(ctx context.Context, q *plan) (keys []int64, free func(), err error) {
	free = func() {}
	switch q.Sort {
	case search.ByRelevance:
		return m.scores(ctx, q)
	case search.LatestPublished, search.FirstPublished:
		return m.published, free, nil
	case search.LargestFirst, search.SmallestFirst:
		return m.areas, free, nil
	}
	return nil, free, nil
}

var scorePool pool[int64]

// Points of a score. Points for a word are multiplied by the weight of the word. The points for pairs and for the
// length of the title are few: for a question of a few words, their sum is less than the points for one word with
// the smallest weight. Titles are divided into classes by length. A title that has all words of the question gets
// byLength once for each class of longer titles.
const (
	byTitle  = 64 // the title has the word in any form
	byForm   = 8  // the title has the word as it was asked
	byPair   = 8  // the title has two neighbouring words of the question side by side
	byText   = 16 // the asset has the word anywhere; used only in searches in which words may be missing
	byLength = 4  // for each class of longer titles

	byWords = 1 << 40 // the asset has the words as they were asked, while others have words of the same meaning
)

// scores returns the score of each found asset of a segment, from the words in its title.
func (m *match) scores(ctx context.Context, q *plan) (scores []int64, free func(), err error) {
	scores, free = scorePool.zeros(int(m.count))
	whole := m.found
	if m.exact != nil { // the assets of the literal plan get its scores
		whole = roaring.AndNot(m.found, m.exact.found)
	}
	scored := whole
	add := func(set *roaring.Bitmap, weight int64) {
		set.And(scored)
		err = each(ctx, set, func(numbers []uint32) {
			for _, n := range numbers {
				scores[n] += weight
			}
		})
	}
	for w, word := range q.words {
		if q.reading.Has(search.ByMissing) {
			add(m.words[w].Clone(), byText*q.weigh[w])
		}
		titles, failed := m.meeting(word, titleField)
		if failed != nil {
			free()
			return nil, nil, failed
		}
		add(titles, byTitle*q.weigh[w])
		if !word.isRange {
			whole = roaring.And(whole, titles)
		}
		if word.exact != "" {
			m.addTerms(exactField, []string{word.exact}, byForm*q.weigh[w], add, &err)
		}
	}
	if q.Text != "" && !whole.IsEmpty() {
		for _, terms := range q.pairs {
			m.addTerms(pairField, terms, byPair, add, &err)
		}
		for n := range lengths {
			weight := int64(byLength * (len(lengths) - n))
			m.addTerms(lengthField, []string{strconv.Itoa(n)}, weight, func(set *roaring.Bitmap, weight int64) {
				set.And(whole)
				add(set, weight)
			}, &err)
		}
	}
	if err == nil && m.exact != nil {
		err = m.scoreExact(ctx, q.literal, scores)
	}
	if err != nil {
		free()
		return nil, nil, err
	}
	return scores, free, nil
}

// scoreExact sets the scores of the assets of a literal plan. They are those of a search without other words, and more
// than the scores of the other assets.
func (m *match) scoreExact(ctx context.Context, literal *plan, scores []int64) error {
	of, free, err := m.exact.scores(ctx, literal)
	if err != nil {
		return err
	}
	defer free()
	return each(ctx, m.exact.found, func(numbers []uint32) {
		for _, n := range numbers {
			scores[n] = of[n] + byWords
		}
	})
}

// addTerms calls the function `add` with the assets that have one of the terms in a field. It does nothing if *err
// is already set.
func (m *match) addTerms(field string, terms []string, weight int64, add func(*roaring.Bitmap, int64), err *error) {
	if *err != nil {
		return
	}
	set, failed := m.having(condition{field: field, terms: terms})
	if failed != nil {
		*err = failed
		return
	}
	add(set, weight)
}

// firsts keeps the first values in an order, out of a great many values. Each sort handles at most 2*most values.
type firsts[T any] struct {
	most    int
	compare func(a, b T) int
	kept    []T  // first the values that the last sort has kept, then values that are not sorted yet
	full    bool // kept[:most] is sorted
	offered int
}

// The method `last` returns the last of the values that the last sort has kept. If ok is true, values that come after
// it in the order need not be offered.
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

// pool re-uses memory for slices of zeros.
type pool[T any] struct{ of sync.Pool }

// zeros returns n zeros, and a function that gives their memory back.
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
