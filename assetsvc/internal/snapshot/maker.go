package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/durable"
)

// Make makes a snapshot and its whole copies. It returns the manifest of the snapshot. It returns ErrBusy
// if another process or call is making a snapshot. After an error all older snapshots and whole copies stay. If
// only the copies have failed, the new snapshot exists.
func (k *Keeper) Make(ctx context.Context) (Manifest, error) {
	unlock, err := k.lock()
	if err != nil {
		return Manifest{}, err
	}
	defer unlock()
	c := k.beginCopies(ctx)
	m, err := k.make(ctx, c.add)
	if err == nil {
		return m, errors.Join(c.keep(m), k.tidy(m.isLast))
	}
	c.drop()
	if c != nil && ctx.Err() == nil { // perhaps the copies have filled the disk
		errBoth := err
		if m, err = k.make(ctx, func(Segment) {}); err == nil {
			return m, errors.Join(fmt.Errorf("make whole copies: %w", errBoth), k.tidy(m.isLast))
		}
	}
	return Manifest{}, errors.Join(fmt.Errorf("make a snapshot: %w", err), k.tidy(everyOne))
}

// everyOne returns true for each snapshot. If tidy gets everyOne as its argument, it removes only snapshots that
// are too old to be kept.
func everyOne(Manifest) bool { return true }

// isLast returns false for a snapshot that a clock, which was wrong, has dated later than the new snapshot m.
func (m Manifest) isLast(old Manifest) bool { return old.Begun <= m.Begun }

// make makes a snapshot, and calls the function `made` with each segment. The caller must hold the lock, and must call
// tidy afterwards.
func (k *Keeper) make(ctx context.Context, made func(Segment)) (m Manifest, err error) {
	// The position must be read before the first asset (docs/snapshot.md, S1).
	now, err := k.store.Page(ctx, registry.HorizonQuery())
	if err != nil {
		return m, err
	}
	m.Position, m.Hidden = now.Upto, k.o.Hidden
	if err := k.tidy(func(old Manifest) bool { return old.Position <= m.Position }); err != nil {
		return m, err
	}
	if m.Begun, err = k.begin(); err != nil {
		return m, err
	}
	if k.o.Checkpoint != nil {
		if m.Checkpoint, err = k.o.Checkpoint(ctx); err != nil {
			return m, fmt.Errorf("read the checkpoint: %w", err)
		}
	}
	if err := k.write(ctx, &m, made); err != nil {
		return m, err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	return m, durable.WriteFile(manifest(k.manifests(), m.Begun), text)
}

// begin returns the time in µs that names a new snapshot: the current time, or a later time if another snapshot
// has this name or a greater one. A snapshot of a wrong clock does not count: it is a whole interval in the future.
func (k *Keeper) begin() (int64, error) {
	now := k.o.Now()
	begun, most := now.UnixMicro(), now.Add(cmp.Or(k.o.Interval, time.Hour)).UnixMicro()
	there, err := list(k.manifests())
	for _, at := range there {
		if at < most {
			begun = max(begun, at+1)
		}
	}
	return begun, err
}

// newEncoder returns an encoder that always makes the same bytes from the same text. It uses the fastest level,
// which needs half the time of the default level and makes 3 % more bytes.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithZeroFrames(true), zstd.WithEncoderLevel(zstd.SpeedFastest))
}

// write writes the segments of a snapshot, and adds them to the manifest m.
func (k *Keeper) write(ctx context.Context, m *Manifest, made func(Segment)) error {
	encoder, err := newEncoder()
	if err != nil {
		return err
	}
	defer encoder.Close()
	var file []byte
	m.Files = &Files{}
	p := &pace{store: k.store, pause: k.pause, upto: m.Position, beside: true}
	return newWalker(k, p).cut(ctx, span{}, func(s span, text []byte, assets int) error {
		begun := time.Now()
		m.Files.count(text)
		file = encoder.EncodeAll(text, file[:0])
		sum := sha256.Sum256(file)
		from, to := s.ids()
		segment := Segment{
			From: from, To: to, SHA256: hex.EncodeToString(sum[:]),
			Bytes: int64(len(file)), Plain: int64(len(text)), Assets: assets,
		}
		if err := k.put(segment.SHA256, file); err != nil {
			return err
		}
		made(segment)
		m.Segments = append(m.Segments, segment)
		m.Assets += assets
		m.Bytes += segment.Bytes
		m.Plain += segment.Plain
		if err := p.look(ctx); err != nil {
			return err
		}
		return p.rest(ctx, time.Since(begun))
	})
}

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
