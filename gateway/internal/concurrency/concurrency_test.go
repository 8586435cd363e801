package concurrency

import "testing"

func TestTheLeastImportantAreRefusedFirst(t *testing.T) {
	l := New(10)
	for _, c := range []struct {
		priority Priority
		admitted int // number of admitted requests at which one more request of this priority is refused
	}{{AnonymousRead, 7}, {KeyedRead, 8}, {Write, 10}} {
		for l.Enter(c.priority) {
		}
		if got := l.Current(); got != int64(c.admitted) {
			t.Errorf("priority of %d %%: got %d admitted, want %d", c.priority, got, c.admitted)
		}
	}
	for range 10 {
		l.Leave()
	}
	if got := l.Current(); got != 0 {
		t.Errorf("after all have left: got %d under way, want 0", got)
	}
}

func TestOneRequestIsAlwaysAdmitted(t *testing.T) {
	l := New(1)
	if !l.Enter(AnonymousRead) {
		t.Error("got the only request refused, want it admitted")
	}
	if l.Enter(Write) {
		t.Error("got a second request admitted, want it refused")
	}
}
