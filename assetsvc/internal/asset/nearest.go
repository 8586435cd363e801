package asset

import (
	"fmt"

	"asset-registry/shared/nearest"
)

// maxNearest is the maximum number of searches for a nearest value in one request. It limits the time that such a
// request can take.
const maxNearest = 50

const theNearest = ": the nearest is '%s'"

// nearest returns the end of an error text. This end suggests the value in a list that is nearest to the sent value.
// For an empty list, and after maxNearest searches, nearest returns "".
func (w *walk) nearest(sent string, of []string) string {
	if w.compared >= maxNearest || len(of) == 0 {
		return ""
	}
	w.compared++
	return fmt.Sprintf(theNearest, nearest.To(sent, of))
}

// The method `near` does the same as nearest. It also returns "" if no value of the list is so similar to the sent
// value that the client may have meant it.
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
