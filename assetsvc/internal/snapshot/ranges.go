package snapshot

import (
	"context"
	"encoding/hex"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

// span is all ids that begin with the same bits.
type span struct {
	first [registry.IDSize]byte // the bits, then zeros
	bits  int
}

// halves returns the two spans with one bit more.
func (s span) halves() (low, high span) {
	low, high = s, s
	low.bits++
	high.bits++
	high.first[s.bits/8] |= 0x80 >> (s.bits % 8)
	return low, high
}

// ids returns the lowest and the highest id.
func (s span) ids() (from, to string) {
	last := s.first
	for i := s.bits; i < 8*registry.IDSize; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	return hex.EncodeToString(s.first[:]), hex.EncodeToString(last[:])
}

// Bounds of a walk.
const (
	pageAssets = 256
	pageBytes  = 1 << 20
	spanBytes  = 4 << 20 // of the lines of a segment with several assets
)

// line is an asset of the walk.
type line struct {
	id  string
	end int // in walker.text
}

// walker reads assets in the order of their ids, and shows them as lines. It holds the
// lines of little more than one segment.
type walker struct {
	store Store
	show  func(dst []byte, e registry.Entry) ([]byte, error)
	pace  *pace
	most  int // bytes of the lines of a segment with several assets

	text  []byte // the lines, each with its line break
	lines []line
	next  string // id to read on from
	ended bool   // everything was read
}

// newWalker returns a walker at the first asset.
func newWalker(k *Keeper, p *pace) *walker {
	const room = spanBytes + registry.MaxAsset + pageBytes // so the text rarely grows
	return &walker{store: k.store, show: k.o.Show, pace: p, most: spanBytes, text: make([]byte, 0, room)}
}

// cut calls emit for the segments of a span, in order. It cuts a span whose lines have
// too many bytes in two halves.
func (w *walker) cut(ctx context.Context, s span, emit func(s span, text []byte, assets int) error) error {
	_, to := s.ids()
	for !w.ended && w.next <= to && (len(w.text) <= w.most || len(w.lines) < 2) {
		if err := w.readPage(ctx); err != nil {
			return err
		}
	}
	n := 0
	for n < len(w.lines) && w.lines[n].id <= to {
		n++
	}
	size := 0
	if n > 0 {
		size = w.lines[n-1].end
	}
	if n > 1 && size > w.most {
		low, high := s.halves()
		if err := w.cut(ctx, low, emit); err != nil {
			return err
		}
		return w.cut(ctx, high, emit)
	}
	if err := emit(s, w.text[:size], n); err != nil {
		return err
	}
	w.drop(n, size)
	return nil
}

// drop removes the first lines, which were emitted.
func (w *walker) drop(n, size int) {
	w.text = append(w.text[:0], w.text[size:]...)
	w.lines = append(w.lines[:0], w.lines[n:]...)
	for i := range w.lines {
		w.lines[i].end -= size
	}
}

func (w *walker) readPage(ctx context.Context) error {
	begun := time.Now()
	page, err := w.store.Range(ctx, registry.RangeQuery{From: w.next, Limit: pageAssets, Bytes: pageBytes})
	if err != nil {
		return err
	}
	for _, e := range page.Entries {
		if w.text, err = w.show(w.text, e); err != nil {
			return err
		}
		w.text = append(w.text, '\n')
		w.lines = append(w.lines, line{e.ID, len(w.text)})
	}
	w.next, w.ended = page.Next, page.Next == ""
	return w.pace.rest(ctx, time.Since(begun))
}
