package feed

import "slices"

// Place is where readers find a document.
type Place struct {
	Position int64
	List     int // names the list that the document is in; 0: readers do not see it
}

// Trail is the places of a document, the newest last. With it readers find a document
// whose newest place is above their horizon: it stands at the newest place up to the
// horizon. A trail forgets places that no reader needs any more
// (docs/architecture.md, "Moved assets").
type Trail []Place

// NewTrail returns the trail of a document before it is created.
func NewTrail() Trail { return Trail{{}} }

// Since returns the newest place up to the horizon and those after it. It forgets the
// others: later readers have that horizon or a higher one. An old horizon forgets less.
func (t Trail) Since(horizon int64) Trail {
	first := 0
	for i, p := range t {
		if p.Position <= horizon {
			first = i
		}
	}
	return t[first:]
}

// Entered returns the position at which the document entered the list that it is in now. It
// is 0 if no list has it, and if the trail has forgotten when that was: a horizon has passed
// it, since a trail begins at or below a horizon that was read.
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

// At returns the place of the document at a horizon. Known is false if the trail has
// forgotten it: the reader must read the clock again, and gets a higher horizon.
func (t Trail) At(horizon int64) (at Place, known bool) {
	for _, p := range t {
		if p.Position <= horizon {
			at, known = p, true
		}
	}
	return at, known
}
