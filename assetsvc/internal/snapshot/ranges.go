package snapshot

import (
	"context"
	"encoding/hex"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

// span is the set of all ids that begin with certain bits.
type span struct {
	first [registry.IDSize]byte // the lowest id of the span: the fixed bits, and then zeros
	bits  int                   // number of fixed bits
}

// halves returns the two halves of the span: one more bit is fixed, as 0 or as 1.
func (s span) halves() (low, high span) {
	low, high = s, s
	low.bits++
	high.bits++
	high.first[s.bits/8] |= 0x80 >> (s.bits % 8)
	return low, high
}

// ids returns the lowest and the highest id of the span.
func (s span) ids() (from, to string) {
	last := s.first
	for i := s.bits; i < 8*registry.IDSize; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	return hex.EncodeToString(s.first[:]), hex.EncodeToString(last[:])
}

// The limits of a walk.
const (
	pageAssets = 256
	pageBytes  = 1 << 20
	spanBytes  = 4 << 20 // maximum number of bytes of lines in a segment; a segment with only one asset may have more
)

// line is an asset that the walker has read.
type line struct {
	id  string
	end int // where the asset's line ends in walker.text
}

// walker reads assets in the order of their ids, and turns them into lines. It holds little more than the lines
// of one segment.
type walker struct {
	store Store
	show  func(dst []byte, e registry.Entry) ([]byte, error)
	pace  *pace
	most  int // maximum number of bytes of lines in a segment; a segment with only one asset may have more

	text  []byte // the lines, each with its line break
	lines []line
	next  string // the id from which to read on
	ended bool   // all assets were read
}

// newWalker returns a walker that begins at the first asset.
func newWalker(k *Keeper, p *pace) *walker {
	const room = spanBytes + registry.MaxAsset + pageBytes // enough that the text rarely grows
	return &walker{store: k.store, show: k.o.Show, pace: p, most: spanBytes, text: make([]byte, 0, room)}
}

// cut divides a span into segments, and calls the function `emit` for each segment in order. It halves a span
// whose lines have too many bytes.
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

// drop removes the first n lines, which were passed to the function `emit`. The argument `size` is the number of
// bytes of these lines.
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
