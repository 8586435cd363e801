package asset

import (
	"fmt"

	"asset-registry/shared/nearest"
)

// maxNearest is the number of searches for a nearest value in one request. It bounds the
// time that a client can make the request take.
const maxNearest = 50

const theNearest = ": the nearest is '%s'"

// nearest returns the end of an error that suggests the nearest value of a list,
// "" for an empty list and after maxNearest searches.
func (w *walk) nearest(sent string, of []string) string {
	if w.compared >= maxNearest || len(of) == 0 {
		return ""
	}
	w.compared++
	return fmt.Sprintf(theNearest, nearest.To(sent, of))
}

// near is nearest for a value that is near enough to be meant.
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
