package concurrency

import (
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestShares(t *testing.T) {
	s := NewShares(2, 3)
	steps := []struct {
		name, client string
		leave        bool
		want         Refusal
	}{
		{"the first of a client", "a", false, Admitted},
		{"its last", "a", false, Admitted},
		{"one more than its share", "a", false, ShareUsed},
		{"another client", "b", false, Admitted},
		{"one more than all may have", "c", false, AllUsed},
		{"after one has left", "a", true, Admitted},
		{"another takes its place", "c", false, Admitted},
		{"again one too many", "a", false, AllUsed},
	}
	for _, step := range steps {
		if step.leave {
			s.Leave(step.client)
			continue
		}
		expect.Equal(t, s.Enter(step.client), step.want, "%s", step.name)
	}
	for _, client := range []string{"a", "b", "c"} {
		s.Leave(client)
	}
	if s.Held() != 0 || len(s.held) != 0 {
		t.Errorf("after all have left: got %d held by %d clients, want 0 by 0", s.Held(), len(s.held))
	}
}
