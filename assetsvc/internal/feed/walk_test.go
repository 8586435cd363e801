package feed

import "slices"

// walker reads the whole list again and again, page by page. It reads each page in three steps, at different
// moments: the clock; the documents up to the clock's horizon; and the documents that have moved above the
// horizon since.
type walker struct {
	limit        int   // maximum number of entries of a page
	offset       int64 // end of the previous page
	horizon      int64 // horizon of this page; 0: the next step reads the clock
	page         map[string]int64
	read         bool            // the documents up to the horizon were read
	want, met    map[string]bool // want: documents visible when the walk began; met: documents found
	turns        int             // how often this page had to be read again
	walks, again int             // walks: walks that have ended; again: pages that were read again
}

// mostTurns is the number of repeated reads of one page at which the simulation fails. A page is read again only
// if, between two steps of the walker, a document changes twice and the horizon passes both changes.
const mostTurns = 6

// step does the next of the three steps in which a page is read.
func (k *walker) step(w *world) {
	first, second := k.readPage, k.readMoved
	if w.leaveOut == pageFirst {
		first, second = second, first
	}
	switch {
	case k.horizon == 0:
		k.begin(w)
	case !k.read:
		k.read = true
		first(w)
	default:
		second(w)
		if k.horizon > 0 { // otherwise the page must be read again
			k.turns = 0
			k.end(w)
		}
		k.horizon, k.page, k.read = 0, nil, false
	}
}

func (k *walker) begin(w *world) {
	k.horizon, k.page = w.clock.Horizon(), map[string]int64{}
	if k.want != nil {
		return
	}
	k.want, k.met = map[string]bool{}, map[string]bool{}
	for id, d := range w.documents {
		if len(d.history) > 0 && d.history[0] <= k.horizon {
			k.want[id] = true
		}
	}
}

func (k *walker) readPage(w *world) {
	for id, position := range w.page(k.offset, k.horizon) {
		k.page[id] = position
	}
}

func (k *walker) readMoved(w *world) {
	if w.leaveOut == former {
		return
	}
	for id, d := range w.documents {
		if d.position <= k.horizon {
			continue
		}
		at, known := d.trail.At(k.horizon)
		if !known && w.leaveOut != readAgain {
			k.horizon = 0
			k.again++
			if k.turns++; k.turns == mostTurns {
				w.fail("Walk: a page from %d was read %d times in vain, as the place of %s is not known", k.offset, k.turns, id)
			}
			return
		}
		if at.Position > k.offset {
			k.page[id] = at.Position
		}
	}
}

// end checks a page that was read. Each document must be on the page, at the newest position that it has up to
// the horizon.
func (k *walker) end(w *world) {
	for id, d := range w.documents {
		at := int64(0)
		for _, position := range d.history {
			if position <= k.horizon {
				at = position
			}
		}
		if at <= k.offset {
			at = 0
		}
		if k.page[id] != at {
			w.fail("Walk: %s is at %d on a page from %d up to %d, want %d", id, k.page[id], k.offset, k.horizon, at)
		}
	}
	var positions []int64
	for _, position := range k.page {
		positions = append(positions, position)
	}
	slices.Sort(positions)
	upto := k.horizon
	if len(positions) >= k.limit {
		upto = positions[k.limit-1]
	}
	for id, position := range k.page {
		if position <= upto {
			k.met[id] = true
		}
	}
	k.offset = max(k.offset, upto)
	if len(positions) > 0 {
		return
	}
	for id := range k.want {
		if !k.met[id] {
			w.fail("Walk: %s was visible when a walk began, but the walk did not meet it", id)
		}
	}
	k.walks++
	k.offset, k.want = 0, nil
}
