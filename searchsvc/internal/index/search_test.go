package index

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestTogetherRunsAllAndReturnsErrors(t *testing.T) {
	var runs atomic.Int64
	failed := errors.New("failed")
	err := together(
		func() error { runs.Add(1); return failed },
		func() error { runs.Add(1); return nil },
		func() error { runs.Add(1); return nil },
	)
	if !errors.Is(err, failed) || runs.Load() != 3 {
		t.Errorf("got %v after %d runs, want %v after 3", err, runs.Load(), failed)
	}
}

func TestTogetherPanicsInTheCaller(t *testing.T) {
	defer func() {
		if got := recover(); got != "a damaged file" {
			t.Errorf("got panic %v, want the function's panic", got)
		}
	}()
	_ = together(func() error { return nil }, func() error { panic("a damaged file") })
	t.Error("got no panic, want the function's panic")
}
