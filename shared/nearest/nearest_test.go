package nearest

import (
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
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
		expect.Equal(t, To(c.sent, c.of), c.want, "to %q of %q", c.sent, c.of)
	}
}

func TestTheComparedLengthIsBounded(t *testing.T) {
	expect.Equal(t, len(compared(strings.Repeat("UA-EDR", 200_000))), comparedLength, "characters to compare")
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
		expect.Equal(t, distance([]rune(c.a), []rune(c.b)), c.want, "from %q to %q", c.a, c.b)
	}
}
