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
