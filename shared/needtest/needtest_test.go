package needtest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestAMissingNeedIsToldOrFails uses recorders in place of real tests. Each recorder needs something that is missing.
// The test must be skipped and reported, but with CI set it must fail.
func TestAMissingNeedIsToldOrFails(t *testing.T) {
	for _, c := range []struct {
		name, ci        string
		failed, skipped bool
		told            string
	}{
		{"a machine of a developer", "", false, true, "one: x is missing: no x here\n"},
		{"CI=false", "false", false, true, "one: x is missing: no x here\n"},
		{"the gate", "true", true, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := filepath.Join(t.TempDir(), "list")
			t.Setenv("CI", c.ci)
			t.Setenv("NOT_TESTED", list)
			one := &recorder{TB: t}
			one.run(func() { Missing(one, "x", errors.New("no x here")) })
			if one.failed != c.failed || one.skipped != c.skipped {
				t.Errorf("got failed %v and skipped %v, want %v and %v", one.failed, one.skipped, c.failed, c.skipped)
			}
			text, err := os.ReadFile(list)
			if err != nil && c.told != "" || string(text) != c.told {
				t.Errorf("got the list %q, %v, want %q", text, err, c.told)
			}
		})
	}
	t.Setenv("CI", "true")
	there, absent := &recorder{TB: t}, &recorder{TB: t}
	there.run(func() { Commands(there, "go") })
	absent.run(func() { Commands(absent, "go", "no-such-command") })
	if there.failed || !absent.failed {
		t.Errorf("got failures %v and %v, want one of the missing command", there.failed, absent.failed)
	}
}

// recorder stands for a test, and records whether the test failed or was skipped.
type recorder struct {
	testing.TB
	failed, skipped bool
}

type ended struct{}

func (r *recorder) Name() string          { return "one" }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; panic(ended{}) }
func (r *recorder) Skipf(string, ...any)  { r.skipped = true; panic(ended{}) }

func (r *recorder) run(test func()) {
	defer func() {
		if got := recover(); got != nil && got != (ended{}) {
			panic(got)
		}
	}()
	test()
}
