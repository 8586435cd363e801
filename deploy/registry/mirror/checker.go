package mirror

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/replica"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

const (
	mostWrong   = 100  // assets that differ from the log and are looked at again
	mostSkipped = 1000 // assets in test mode that one look passes over
	mostRefused = 10   // answers without a salt until the mirror is not ready
	proveWithin = 10 * time.Second
)

// outcome is what the comparison of an asset with the public log has found.
type outcome string

const (
	matches outcome = "matches"
	differs outcome = "differs"
	// unsettled: the asset was withdrawn, the log does not have it yet, or the origin is away.
	unsettled outcome = "unknown"
	// refused: the origin is there, and has not given the salt of the leaf.
	refused outcome = "refused"
)

// checker compares assets of the copy with the public log, one after the other in the order
// of ids, from a random one on. The salt of a leaf comes from the origin.
type checker struct {
	copied interface {
		From(id string, visit func(replica.Entry) bool) error
	}
	leaf  func(ctx context.Context, position int64) (translog.Leaf, error) // of the copy of the log
	prove func(ctx context.Context, id string, revision int64) (client.Proof, error)
	log   *slog.Logger
	count func(outcome) // counts the comparisons
	// isAway tells whether the origin does not answer other questions, either.
	isAway func() bool

	next string // id of the next asset

	mu    sync.Mutex
	wrong []replica.Entry // without their texts; the next one to look at is the first
	// unproven are assets whose salt was refused, as wrong, and refusals is how often one was
	// since none of them was left.
	unproven []replica.Entry
	refusals int
}

// run compares an asset each time that a time has passed, until ctx is done.
func (c *checker) run(ctx context.Context, every time.Duration) {
	var start [16]byte
	_, _ = rand.Read(start[:]) // it never fails
	c.next = hex.EncodeToString(start[:])
	for {
		sleep.For(ctx, every)
		if ctx.Err() != nil {
			return
		}
		c.step(ctx)
	}
}

// step compares the next asset, one of those that differed before, and one whose salt was
// refused.
func (c *checker) step(ctx context.Context) {
	for _, list := range []*[]replica.Entry{&c.wrong, &c.unproven} {
		if id, found := c.suspect(list); found {
			c.look(ctx, id)
		}
	}
	if id, found := c.take(); found {
		c.look(ctx, id)
	}
}

// take returns the id of the next asset that is not in test mode. After the last id it begins
// anew, at the next call.
func (c *checker) take() (id string, found bool) {
	seen := 0
	err := c.copied.From(c.next, func(e replica.Entry) bool {
		id, found = e.ID, !e.Test
		seen++
		return !found && seen < mostSkipped
	})
	c.next = after(id)
	return id, found && err == nil // the goroutine that follows the origin tells of a damaged copy
}

// after returns the lowest id above an id; "" after the last one, and for "".
func after(id string) string {
	key, err := hex.DecodeString(id)
	if err != nil {
		return ""
	}
	for i := len(key) - 1; i >= 0; i-- {
		if key[i]++; key[i] != 0 {
			return hex.EncodeToString(key)
		}
	}
	return ""
}

// get returns an asset of the copy.
func (c *checker) get(id string) (e replica.Entry, found bool, err error) {
	err = c.copied.From(id, func(got replica.Entry) bool {
		if found = got.ID == id; found {
			e = got
			e.JSON = bytes.Clone(got.JSON)
		}
		return false
	})
	return e, found, err
}

// look compares an asset with the log, and notes what it finds.
func (c *checker) look(ctx context.Context, id string) {
	e, found, err := c.get(id)
	if err != nil {
		return
	}
	if !found {
		c.note(replica.Entry{ID: id}, unsettled)
		return
	}
	result, err := c.compare(ctx, e)
	if ctx.Err() != nil {
		return
	}
	c.count(result)
	known := c.note(e, result)
	if result == refused && c.refused() == mostRefused {
		c.log.Warn("the registry does not prove its assets; the mirror is not ready", "asset", e.ID, "error", err)
	}
	if result == differs && !known {
		c.log.Warn("an asset of the copy differs from the public log", "asset", e.ID, "position", e.Position, "error", err)
	}
}

// compare compares an asset with its leaf. The salt counts only if the origin shows with it
// an asset that the leaf commits to: then the registry and its log agree, and only the copy
// may differ.
func (c *checker) compare(ctx context.Context, e replica.Entry) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, proveWithin)
	defer cancel()
	leaf, err := c.leaf(ctx, e.Position)
	if err != nil || leaf.Asset != e.ID || leaf.Kind == translog.Withdraw {
		return unsettled, err // copied.compare holds that each asset has its leaf
	}
	proof, err := c.prove(ctx, e.ID, leaf.Revision)
	if err != nil && c.isAway() {
		return unsettled, err
	}
	if err != nil {
		return refused, err
	}
	var salt translog.Salt
	if err := salt.UnmarshalText([]byte(proof.Salt)); err != nil {
		return refused, fmt.Errorf("the proof has no salt: %w", err)
	}
	if err := leaf.Match(proof.Asset, salt); err != nil {
		return refused, fmt.Errorf("the origin shows another asset than the log: %w", err)
	}
	if err := leaf.Match(e.JSON, salt); err != nil {
		return differs, err
	}
	return matches, nil
}

// suspect returns the id of an asset of a list, to look at it again.
func (c *checker) suspect(list *[]replica.Entry) (id string, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(*list) == 0 {
		return "", false
	}
	first := (*list)[0]
	*list = append((*list)[1:], first)
	return first.ID, true
}

// note notes what was found of an asset. It returns whether the same was known before. An
// asset that differed does so no longer once it matches, or is at another position.
func (c *checker) note(e replica.Entry, found outcome) (known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteRefusal(e, found)
	for i, was := range c.wrong {
		if was.ID != e.ID {
			continue
		}
		if was.Position == e.Position && found != matches {
			return true
		}
		c.wrong = append(c.wrong[:i:i], c.wrong[i+1:]...)
		break
	}
	if found == differs && len(c.wrong) < mostWrong {
		c.wrong = append(c.wrong, replica.Entry{ID: e.ID, Position: e.Position})
	}
	return false
}

// noteRefusal counts the answers without a salt, until each asset concerned is proven, differs or
// has changed. So one refused asset counts as often as it is asked for, and an outage passes.
func (c *checker) noteRefusal(e replica.Entry, found outcome) {
	i := slices.IndexFunc(c.unproven, func(was replica.Entry) bool { return was.ID == e.ID })
	settled := found == matches || found == differs
	switch {
	case found == refused && i < 0 && len(c.unproven) < mostRefused:
		c.unproven = append(c.unproven, replica.Entry{ID: e.ID, Position: e.Position})
	case found == refused && i >= 0:
		c.unproven[i].Position = e.Position
	case i >= 0 && (settled || c.unproven[i].Position != e.Position):
		c.unproven = slices.Delete(c.unproven, i, i+1)
	}
	switch {
	case found == refused:
		c.refusals++
	case len(c.unproven) == 0:
		c.refusals = 0
	}
}

// refused returns how many answers had no salt.
func (c *checker) refused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusals
}

// differing returns how many assets are known to differ from the log, at most mostWrong.
func (c *checker) differing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.wrong)
}
