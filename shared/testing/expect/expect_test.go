package expect_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"asset-registry/shared/testing/expect"
)

// told is a test that keeps what it is told.
type told struct {
	testing.TB
	lines []string
}

func (t *told) Helper()                      {}
func (t *told) Error(args ...any)            { t.lines = append(t.lines, fmt.Sprint(args...)) }
func (t *told) Fatal(args ...any)            { t.lines = append(t.lines, "end: "+fmt.Sprint(args...)) }
func (t *told) Errorf(f string, args ...any) { t.Error(fmt.Sprintf(f, args...)) }

// TestEachCheckFails gives each check a right value, and then a wrong one. Only the second may be told.
func TestEachCheckFails(t *testing.T) {
	one, other := errors.New("one"), errors.New("other")
	for _, c := range []struct {
		want  string
		check func(t testing.TB, wrong bool)
	}{
		{"end: one", func(t testing.TB, wrong bool) { expect.OK(t, nil, map[bool]error{true: one}[wrong]) }},
		{"end: one", func(t testing.TB, wrong bool) { expect.Get(7, map[bool]error{true: one}[wrong])(t) }},
		{"one", func(t testing.TB, wrong bool) { expect.Try(t, map[bool]error{true: one}[wrong]) }},
		{"a 7: got other, want one", func(t testing.TB, wrong bool) {
			expect.Err(t, map[bool]error{true: other, false: one}[wrong], one, "a %d", 7)
		}},
		{"got 7, other, want one", func(t testing.TB, wrong bool) {
			expect.ErrOf(t, one, "")(7, map[bool]error{true: other, false: fmt.Errorf("it: %w", one)}[wrong])
		}},
		{`a: got "x", want "y"`, func(t testing.TB, wrong bool) {
			expect.Equal(t, map[bool]string{true: "x", false: "y"}[wrong], "y", "a")
		}},
		{"the a differ (-want +got):\n-x", func(t testing.TB, wrong bool) {
			expect.NoDiff(t, map[bool]string{true: "-x"}[wrong], "the %s differ", "a")
		}},
	} {
		right, wrong := &told{}, &told{}
		c.check(right, false)
		c.check(wrong, true)
		if len(right.lines) > 0 || !slices.Equal(wrong.lines, []string{c.want}) {
			t.Errorf("got %q and %q, want nothing and %q", right.lines, wrong.lines, c.want)
		}
	}
	if got := expect.Get(7, nil)(t); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}
