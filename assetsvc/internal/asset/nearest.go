package asset

import (
	"fmt"

	"asset-registry/shared/nearest"
)

// maxNearest is the most searches for a nearest value in one request. It limits the time that such a request
// can take.
const maxNearest = 50

const theNearest = ": the nearest is '%s'"

// nearest returns the end of an error text, which suggests the value in a list that is nearest to the sent
// value. It returns "" for an empty list, and after maxNearest searches.
func (w *walk) nearest(sent string, of []string) string {
	if w.compared >= maxNearest || len(of) == 0 {
		return ""
	}
	w.compared++
	return fmt.Sprintf(theNearest, nearest.To(sent, of))
}

// near does the same as nearest, but also returns "" if every value differs too much from the sent one to be what the
// client meant.
func (w *walk) near(sent string, of []string) string {
	if w.compared >= maxNearest {
		return ""
	}
	w.compared++
	if best := nearest.Near(sent, of); best != "" {
		return fmt.Sprintf(theNearest, best)
	}
	return ""
}
