package registry

import (
	"context"
	"sync"
	"testing"

	"asset-registry/shared/testing/expect"
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
			expect.Equal(t, inside, 1, "holders at once")
			inside--
			end()
		})
	}
	wg.Wait()
}

func TestTheWaitForATurnEndsWithTheContext(t *testing.T) {
	turn := newTurns().of("a")
	end, err := turn.take(t.Context())
	expect.OK(t, err)
	gone, leave := context.WithCancel(t.Context())
	leave()
	expect.ErrOf(t, context.Canceled, "")(turn.take(gone))
	end()
	end, err = turn.take(t.Context())
	expect.OK(t, err)
	end()
}
