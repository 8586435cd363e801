package memory

import (
	"bytes"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/metrictest"
	"asset-registry/shared/testing/expect"
)

func TestLimitIsNoMoreThanGOMEMLIMIT(t *testing.T) {
	before := debug.SetMemoryLimit(100 << 20)
	defer debug.SetMemoryLimit(before)
	expect.Equal(t, Limit(), 100<<20, "a limit of bytes")
}

func TestTheCollectorRespectsABudget(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("AUTOMEMLIMIT", "off") // the limits of this machine's control group must not change the results
	for _, c := range []struct{ limit, budget, want int64 }{
		{1 << 40, 0, 1 << 40},
		{1 << 40, 100 << 20, 80 << 20},
		{50 << 20, 100 << 20, 50 << 20},
	} {
		debug.SetMemoryLimit(c.limit)
		RespectLimit(slog.New(slog.DiscardHandler), c.budget)
		expect.Equal(t, debug.SetMemoryLimit(-1), c.want, "limit %d, budget %d", c.limit, c.budget)
	}
	debug.SetMemoryLimit(1 << 40)
	t.Setenv("GOMEMLIMIT", "1TiB")
	RespectLimit(slog.New(slog.DiscardHandler), 100<<20)
	expect.Equal(t, debug.SetMemoryLimit(-1), 1<<40, "with GOMEMLIMIT")
}

func TestLimitIsKnownWithoutGOMEMLIMIT(t *testing.T) {
	if got := Limit(); got < 16<<20 || got > 1<<50 {
		t.Errorf("got a limit of %d bytes, want the limit of a machine or a control group", got)
	}
}

func TestLargeHoldersLeaveRoomForSmallOnes(t *testing.T) {
	b := NewBudget(4 << 20)
	expect.FatalIf(t, !b.Hold(3<<20), "a large holder: got 3 of 4 MiB refused, want them held")
	expect.ErrorIf(t, b.Hold(Small+1), "a large holder: got a part of the last quarter, want it refused")
	for n := range (1 << 20) / Small {
		expect.FatalIf(t, !b.Hold(Small), "small holder %d: got it refused, want it held in the last quarter", n)
	}
	expect.ErrorIf(t, b.Hold(1), "got a byte more than the budget has, want it refused")
	expect.Equal(t, b.Used(), 4<<20, "bytes used")
	expect.Equal(t, b.Refused(), 2, "refusals counted")
}

// taken is an answer whose client takes everything, and stuck is one whose client takes nothing.
type taken struct{}

func (taken) Waits() time.Duration { return 0 }
func (taken) Cut()                 {}

type stuck struct{ *int }

func (stuck) Waits() time.Duration { return time.Minute }
func (s stuck) Cut()               { *s.int++ }

// TestAStuckAnswerLeavesItsBytesToOthers fills the budget with answers, small and large, whose clients take nothing. A
// further answer gets its bytes, as many answers end as it needs, and the answers that end later release nothing twice.
// Promises: stuck-answers
func TestAStuckAnswerLeavesItsBytesToOthers(t *testing.T) {
	for _, size := range []int{Small, 1 << 20} {
		a, cut := NewInFlight(4<<20), 0
		var releases []func()
		for i := 0; ; i++ {
			body := bytes.Repeat([]byte{byte(i)}, size)
			_, release, ok := a.keep(body)
			if !ok {
				break
			}
			releases = append(releases, a.held.Add("attacker", stuck{&cut}, release))
		}
		_, release, ok := a.Keep("other", taken{}, bytes.Repeat([]byte("x"), size))
		if !ok || cut != 1 {
			t.Errorf("%d bytes: got %t after %d cuts, want the bytes of one answer", size, ok, cut)
			continue
		}
		release()
		for _, release := range releases {
			release()
		}
		expect.Equal(t, a.Used(), 0, "%d bytes: bytes held at the end", size)
	}
}

func TestEqualLargeAnswersShareTheirBytes(t *testing.T) {
	a := NewInFlight(4 << 20)
	first := bytes.Repeat([]byte("x"), 1<<20)
	want := int64(cap(first))
	var releases []func()
	for range 100 {
		kept, release, ok := a.Keep("caller", taken{}, bytes.Clone(first))
		expect.FatalIf(t, !ok || !bytes.Equal(kept, first), "an equal answer: got it refused or changed, want it kept")
		releases = append(releases, release)
	}
	if got := a.Used(); got > 2*want {
		t.Errorf("100 equal answers: got %d bytes held, want at most %d", got, 2*want)
	}
	for n := range 2 {
		if _, release, ok := a.Keep("caller", taken{}, []byte(strings.Repeat(string(rune('a'+n)), 1<<20))); ok {
			releases = append(releases, release)
		} else {
			t.Errorf("large answer %d: got it refused, want it held", n)
		}
	}
	if _, _, ok := a.Keep("caller", taken{}, []byte(strings.Repeat("z", 1<<20))); ok {
		t.Error("a fourth large answer: got it held, want its space left to small answers")
	}
	if _, release, ok := a.Keep("caller", taken{}, []byte("small")); ok {
		releases = append(releases, release)
	} else {
		t.Error("a small answer: got it refused, want it held")
	}
	for _, release := range releases {
		release()
	}
	expect.Equal(t, a.Used(), 0, "bytes held at the end")
	expect.Equal(t, len(a.shared), 0, "answers remembered at the end")
}

func TestMemoryIsMeasured(t *testing.T) {
	meter, b := metrictest.New(), NewBudget(100)
	stop := Measure(meter, map[string]Limiter{"bodies": b})
	b.Hold(60)
	b.Hold(60)
	told := meter.Read(t)
	want := map[string]float64{
		"registry.memory.used{bodies}": 60, "registry.memory.size{bodies}": 100, "registry.memory.refused{bodies}": 1,
	}
	expect.NoDiff(t, cmp.Diff(want, told), "metrics")
	stop()
}
