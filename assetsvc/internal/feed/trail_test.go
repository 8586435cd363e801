package feed

import (
	"slices"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestATrailTellsWhenItsDocumentEnteredItsList(t *testing.T) {
	for _, c := range []struct {
		name  string
		trail Trail
		want  int64
	}{
		{"in no list", Trail{{0, 0}, {5, 0}}, 0},
		{"created in a list", Trail{{0, 0}, {5, 1}}, 5},
		{"published", Trail{{0, 0}, {5, 0}, {7, 1}}, 7},
		{"changed since it was published", Trail{{5, 0}, {7, 1}, {8, 1}, {9, 1}}, 7},
		{"published long ago", Trail{{7, 1}, {8, 1}}, 0},
		{"from another list", Trail{{7, 1}, {8, 2}, {9, 2}}, 8},
		{"back in a list", Trail{{7, 1}, {8, 2}, {9, 1}}, 9},
		{"without former places", Trail{{7, 1}}, 0},
		{"taken out of its list", Trail{{5, 0}, {7, 1}, {8, 0}}, 0},
	} {
		expect.Equal(t, c.trail.Entered(), c.want, "%s", c.name)
	}
}

func TestATrailForgetsWhatNoLaterHorizonNeeds(t *testing.T) {
	trail := Trail{{0, 0}, {5, 1}, {8, 2}}
	for _, c := range []struct {
		horizon int64
		want    Trail
	}{
		{4, trail},
		{5, trail[1:]},
		{7, trail[1:]},
		{8, trail[2:]},
		{9, trail[2:]},
	} {
		if got := trail.Since(c.horizon); !slices.Equal(got, c.want) {
			t.Errorf("since %d: got %v, want %v", c.horizon, got, c.want)
		}
	}
}
