package site

import (
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestThousandsAreSeparated(t *testing.T) {
	for _, c := range []struct{ number, want string }{
		{"1", "1"}, {"123", "123"}, {"1234", "1,234"}, {"-123", "−123"}, {"-1234567.5", "−1,234,567.5"},
		{"12345678901234567890", "12,345,678,901,234,567,890"}, {"1e5", "1e5"}, {"", ""},
	} {
		expect.Equal(t, decimal(English, c.number), c.want, "%s", c.number)
	}
}

// TestTheWorkOnANumberGrowsWithItsDigits formats a number of 100,000 digits. It must take few allocations, not
// one for each group of digits.
func TestTheWorkOnANumberGrowsWithItsDigits(t *testing.T) {
	number := strings.Repeat("9", 100_000)
	if got := testing.AllocsPerRun(1, func() { decimal(English, number) }); got > 100 {
		t.Errorf("got %.0f texts made of a number, want at most 100", got)
	}
}
