package registry

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestChangesOfOneAssetTakeTurns(t *testing.T) {
	turn := newTurns().of("a")
	inside := 0
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			end, err := turn.take(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			inside++ // if two holders are inside, the race detector reports it
			if inside != 1 {
				t.Errorf("got %d holders at once, want 1", inside)
			}
			inside--
			end()
		})
	}
	wg.Wait()
}

func TestTheWaitForATurnEndsWithTheContext(t *testing.T) {
	turn := newTurns().of("a")
	end, err := turn.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := turn.take(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	end()
	if end, err = turn.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
}
