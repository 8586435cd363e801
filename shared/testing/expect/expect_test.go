package expect_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"asset-registry/shared/fault"
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
func (t *told) Fatalf(f string, args ...any) { t.Fatal(fmt.Sprintf(f, args...)) }

// TestEachCheckFails gives each check a right value, and then a wrong one. Only the second may be told.
func TestEachCheckFails(t *testing.T) {
	one, other := errors.New("one"), errors.New("other")
	oneIf := map[bool]error{true: one}
	gone := map[bool]error{true: one, false: fault.New(fault.Gone, fault.URL, "x", "y")}
	for _, c := range []struct {
		want  string
		check func(t testing.TB, wrong bool)
	}{
		{"end: one", func(t testing.TB, wrong bool) { expect.OK(t, nil, oneIf[wrong]) }},
		{"end: one", func(t testing.TB, wrong bool) { expect.Get(7, oneIf[wrong])(t) }},
		{"one", func(t testing.TB, wrong bool) { expect.Try(t, oneIf[wrong]) }},
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
		{"got 7, want 8", func(t testing.TB, wrong bool) { expect.ErrorIf(t, wrong, "got %d, want 8", 7) }},
		{"end: got 7, want 8", func(t testing.TB, wrong bool) { expect.FatalIf(t, wrong, "got %d, want 8", 7) }},
		{"end: a: one", func(t testing.TB, wrong bool) { expect.Must(t, oneIf[wrong], "a") }},
		{"end: a: one", func(t testing.TB, wrong bool) { expect.MustOf(t, "a")(7, oneIf[wrong]) }},
		{"a: got one, want nil", func(t testing.TB, wrong bool) { expect.NilOf(t, "a")(7, oneIf[wrong]) }},
		{"got 7, one; want 7", func(t testing.TB, wrong bool) { expect.Value(t, 7, "")(7, oneIf[wrong]) }},
		{"got 6, <nil>; want 7", func(t testing.TB, wrong bool) {
			expect.Value(t, 7, "")(map[bool]int{true: 6, false: 7}[wrong], nil)
		}},
		{"a: got one of kind 0, want kind " + fmt.Sprint(int(fault.Gone)), func(t testing.TB, wrong bool) {
			expect.FaultOf(t, fault.Gone, "a")(7, gone[wrong])
		}},
		{"a: got <nil>, want an error", func(t testing.TB, wrong bool) {
			expect.FailsOf(t, "a")(7, map[bool]error{false: one}[wrong])
		}},
		{`a: got other, want an error with "ne"`, func(t testing.TB, wrong bool) {
			expect.SaysOf(t, "ne", "a")(7, map[bool]error{true: other, false: one}[wrong])
		}},
	} {
		right, wrong := &told{}, &told{}
		c.check(right, false)
		c.check(wrong, true)
		if len(right.lines) > 0 || !slices.Equal(wrong.lines, []string{c.want}) {
			t.Errorf("got %q and %q, want nothing and %q", right.lines, wrong.lines, c.want)
		}
	}
	expect.Equal(t, expect.Get(7, nil)(t), 7, "")
}
