package nearest

import (
	"strings"
	"testing"
)

func TestTo(t *testing.T) {
	for _, c := range []struct {
		sent string
		of   []string
		want string
	}{
		{"regoin", []string{"q", "region", "status"}, "region"}, {"STATUS", []string{"region", "status"}, "status"},
		{"titl", []string{"til", "title"}, "title"}, {"titel", []string{"till", "title"}, "title"}, {"x", nil, ""},
	} {
		if got := To(c.sent, c.of); got != c.want {
			t.Errorf("to %q of %q: got %q, want %q", c.sent, c.of, got, c.want)
		}
	}
}

func TestTheComparedLengthIsBounded(t *testing.T) {
	if got := compared(strings.Repeat("UA-EDR", 200_000)); len(got) != comparedLength {
		t.Errorf("got %d characters to compare, want %d", len(got), comparedLength)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"title", "title", 0}, {"titel", "title", 1}, {"titl", "title", 1},
		{"джип", "длгп", 2}, {"обід", "вхід", 2}, {"jeep", "jabp", 2}, {"ab", "ba", 1}, {"abcd", "badc", 2}, {"ca", "abc", 3},
		{"склад", "складa", 1},
		{"kitten", "sitting", 3}, {"щука", "щит", 3},
	} {
		if got := distance([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("from %q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
