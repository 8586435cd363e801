package httpapi

import "testing"

// TestBoundsAreThoseOfTheContract compares the bounds in the code with the bounds that docs/contract.md states.
// Promises: health-bound, stream-selections
func TestBoundsAreThoseOfTheContract(t *testing.T) {
	if maxHealth != 100 || maxSelections != 32 {
		t.Errorf("got %d health checks and %d selections, want 100 and 32", maxHealth, maxSelections)
	}
}
