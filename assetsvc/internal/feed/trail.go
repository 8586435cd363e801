package feed

import "slices"

// Place is a place where readers find a document: a position in a list.
type Place struct {
	Position int64
	List     int // which list the document is in; 0: in none, so readers do not see it
}

// Trail has the places of a document, the newest last. Readers need it for a document whose newest place is above
// their horizon: for them, the document stands at its newest place up to the horizon. A trail forgets places that
// no reader needs any more (docs/protocol.md, "Moved assets").
type Trail []Place

// NewTrail returns the trail of a document that does not exist yet.
func NewTrail() Trail { return Trail{{}} }

// Since returns the newest place up to the horizon, and all places after it. It forgets the older places, because
// later readers have this horizon or a higher one. If the horizon is old, it forgets fewer places, which is
// harmless.
func (t Trail) Since(horizon int64) Trail {
	first := 0
	for i, p := range t {
		if p.Position <= horizon {
			first = i
		}
	}
	return t[first:]
}

// Entered returns the position at which the document entered the list that it is in now. It returns 0 if the
// document is in no list. It also returns 0 if the trail has forgotten that position. Then a horizon has passed
// that position, because a trail forgets only positions below a horizon that was read.
func (t Trail) Entered() int64 {
	newest := t[len(t)-1]
	if newest.List == 0 {
		return 0
	}
	at := int64(0)
	for _, p := range slices.Backward(t) {
		if p.List != newest.List {
			return at
		}
		at = p.Position
	}
	return 0
}

// At returns the place that the document has at a horizon. If the trail has forgotten that place, the result
// `known` is false. Then the reader must read the clock again: by now the clock has a higher horizon.
func (t Trail) At(horizon int64) (at Place, known bool) {
	for _, p := range t {
		if p.Position <= horizon {
			at, known = p, true
		}
	}
	return at, known
}
