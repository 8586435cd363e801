package replica

import (
	"context"
	"time"

	"asset-registry.example/client"
)

// Bounds of the changes that Follow stores together. A store needs about as long for a few changes as for one, so a
// follower that stored each change alone would fall behind.
const (
	mostGathered = 16 << 20               // bytes of text, without the last page; pageLimit is the bound of the entries
	gatherFor    = 250 * time.Millisecond // the longest time that a change waits for others
)

// gather passes pages on, and joins those that arrive while the receiver is busy, or within gatherFor of the page that
// it passed on before. So a change after a quiet time goes on at once. When the sender closes its channel, gather
// passes on the rest.
func gather(ctx context.Context, in <-chan client.Page, out chan<- client.Page) error {
	var joined client.Page
	size, due, open := 0, false, true
	rest := time.NewTimer(0)
	defer rest.Stop()
	for some := false; open || some; some = joined.Next != (client.Position{}) {
		full := len(joined.Raw) >= pageLimit || size >= mostGathered
		from, to := in, out
		if full || !open {
			from = nil
		}
		if !some || open && !full && !due {
			to = nil
		}
		select {
		case page, more := <-from:
			if open = more; more {
				joined.Raw, joined.Next = append(joined.Raw, page.Raw...), page.Next
				size += sizeOf(page)
			}
		case to <- joined:
			joined, size, due = client.Page{}, 0, false
			rest.Reset(gatherFor)
		case <-rest.C:
			due = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func sizeOf(page client.Page) (bytes int) {
	for _, text := range page.Raw {
		bytes += len(text)
	}
	return bytes
}
