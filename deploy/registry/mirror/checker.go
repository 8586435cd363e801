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
	mostWrong   = 100  // maximum number of assets that are known to differ, and are checked again
	mostSkipped = 1000 // maximum number of assets in test mode that are skipped to find the next asset
	mostRefused = 10   // if this many answers have no salt, the mirror is not ready
	proveWithin = 10 * time.Second
)

// outcome is the result of comparing an asset with the public log.
type outcome string

const (
	matches outcome = "matches"
	differs outcome = "differs"
	// unsettled: the asset was withdrawn, the log does not have it yet, or the origin cannot be reached.
	unsettled outcome = "unknown"
	// refused: the origin answers other requests, but gives no salt with which its asset matches the leaf.
	refused outcome = "refused"
)

// checker compares the assets of the copy with the public log, one after the other, in the order of their ids.
// The first id is random. The origin gives the salts of the leaves.
type checker struct {
	copied interface {
		From(id string, visit func(replica.Entry) bool) error
	}
	leaf  func(ctx context.Context, position int64) (translog.Leaf, error) // returns a leaf from the copy of the log
	prove func(ctx context.Context, id string, revision int64) (client.Proof, error)
	log   *slog.Logger
	count func(outcome) // counts the comparisons by outcome
	// isAway reports whether the origin fails to answer other requests too.
	isAway func() bool

	next string // id of the next asset

	mu    sync.Mutex
	wrong []replica.Entry // assets that differ, without their texts; the first is checked next
	// unproven lists the assets for which an answer had no salt, without their texts. The first asset is
	// checked next. refusals counts the answers without a salt since the list was last empty.
	unproven []replica.Entry
	refusals int
}

// run compares one asset in each interval, until ctx is done. The argument `every` is the length of the interval.
func (c *checker) run(ctx context.Context, every time.Duration) {
	var start [16]byte
	_, _ = rand.Read(start[:]) // rand.Read never returns an error
	c.next = hex.EncodeToString(start[:])
	for {
		sleep.For(ctx, every)
		if ctx.Err() != nil {
			return
		}
		c.step(ctx)
	}
}

// step compares one of the assets that differed before, one of the assets whose salt was refused, and the next
// asset.
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

// take returns the id of the next asset that is not in test mode. After the last id, the next call begins with
// the first one.
func (c *checker) take() (id string, found bool) {
	seen := 0
	err := c.copied.From(c.next, func(e replica.Entry) bool {
		id, found = e.ID, !e.Test
		seen++
		return !found && seen < mostSkipped
	})
	c.next = after(id)
	return id, found && err == nil // if the copy is damaged, the goroutine that follows the origin reports it
}

// The function `after` returns the next higher id. It returns "" for the highest id and for "".
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

// look compares an asset with the log, and records the result.
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

// compare compares an asset with its leaf. The origin answers with a salt and with its own state of the asset.
// compare uses the salt only if this state matches the leaf. Then the registry and its log agree, so only the
// copy can be wrong.
func (c *checker) compare(ctx context.Context, e replica.Entry) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, proveWithin)
	defer cancel()
	leaf, err := c.leaf(ctx, e.Position)
	if err != nil || leaf.Asset != e.ID || leaf.Kind == translog.Withdraw {
		return unsettled, err // copied.compare finds the assets that have no leaf
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

// suspect takes the first asset of a list, to check it again, and returns its id.
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

// note records the result for an asset. The field "wrong" lists the assets that differ from the log. note
// returns true if the list already has the asset and the asset still does not match. An asset leaves the list
// once it matches the log or has another position.
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

// noteRefusal counts answers without a salt. If an asset is refused several times, each time counts. The count
// returns to 0 when the list `unproven` is empty: each of its assets was proven, differs, or has changed. So the
// count forgets an outage that has ended.
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

// refused returns the number of answers without a salt since the list `unproven` was last empty.
func (c *checker) refused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusals
}

// differing returns how many assets are known to differ from the log. It is at most mostWrong.
func (c *checker) differing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.wrong)
}
