package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"asset-registry.example/client"

	"asset-registry/shared/sleep"
)

const (
	maxWindow   = 16 << 20 // bytes of a file that a decoder keeps in memory
	mostRepeats = 5        // attempts to read one snapshot while files of it are missing or damaged
	repeatPause = 2 * time.Second
)

// load stores the newest snapshot. If the registry has no snapshot, load stores no assets, and the feed fills the
// copy. If files of the snapshot are gone or damaged, load asks for the newest snapshot again and continues with that.
func (r *run) load(ctx context.Context) error {
	var before client.Timestamp
	for repeats := 0; ; {
		snapshot, err := r.source.Snapshot(ctx)
		if client.IsNotFound(err) {
			return r.withoutSnapshot()
		}
		if err != nil {
			return err
		}
		if err := r.same(snapshot.Start); err != nil {
			return err
		}
		if at, err := positionOf(snapshot.Start); err != nil || at > Latest() {
			return fmt.Errorf("%w: its snapshot is of %.50q", ErrAnswer, snapshot.Start.Offset)
		}
		if snapshot.Date != before {
			before, repeats = snapshot.Date, 0
		}
		err = r.snapshot(ctx, snapshot)
		passes := (client.IsNotFound(err) || errors.Is(err, client.ErrSegment)) && !errors.Is(err, ErrNotStored)
		if repeats++; !passes || repeats == mostRepeats {
			return err
		}
		if !sleep.For(ctx, repeatPause) {
			return ctx.Err()
		}
	}
}

// withoutSnapshot ends the loading of a snapshot, so that the feed fills the rest of the copy.
func (r *run) withoutSnapshot() error {
	c := Change{State: r.State()}
	c.State.Loading = false
	return r.store(c)
}

// snapshot stores all files of a snapshot that the copy does not have yet. Then it stores the snapshot's position.
func (r *run) snapshot(ctx context.Context, s client.Snapshot) error {
	r.done.Snapshots++
	loaded, err := r.Loaded()
	if err != nil {
		return err
	}
	var missing []client.Segment
	r.done.OfAssets, r.done.OfBytes = r.done.Assets, r.done.Bytes
	for _, segment := range s.Segments {
		if !loaded[segment.SHA256] {
			missing = append(missing, segment)
			r.done.OfAssets += segment.Assets
			r.done.OfBytes += segment.UncompressedBytes
		}
	}
	state := State{Origin: r.source.Address, Position: client.Position{ServerID: s.Start.ServerID}, Loading: true}
	if err := r.store(Change{State: state}); err != nil {
		return err
	}
	if err := r.segments(ctx, missing, state); err != nil {
		return err
	}
	state.Position, state.Loading = s.Start, false
	r.done.OfAssets, r.done.OfBytes = 0, 0
	return r.store(Change{State: state})
}

// file is a segment with its entries, or the error of reading it.
type file struct {
	segment client.Segment
	entries []Entry
	err     error
}

// segments stores the files in order. It reads several files ahead, concurrently.
func (r *run) segments(ctx context.Context, missing []client.Segment, state State) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	decoder, err := newDecoder()
	if err != nil {
		return fmt.Errorf("start zstd: %w", err)
	}
	files := r.readAhead(ctx, missing, decoder)
	defer func() { // the decoder is closed after the readers have ended
		cancel()
		for read := range files {
			<-read
		}
		decoder.Close()
	}()
	c, size := Change{State: state}, int64(0)
	for read := range files {
		f := <-read
		if f.err != nil {
			return errors.Join(f.err, r.store(c)) // the files before the broken one are stored
		}
		c.Entries = append(c.Entries, f.entries...)
		c.Segments = append(c.Segments, f.segment.SHA256)
		if size += f.segment.UncompressedBytes; size >= batchSize {
			if err := r.store(c); err != nil {
				return err
			}
			c, size = Change{State: state}, 0
		}
	}
	return errors.Join(r.store(c), ctx.Err())
}

// readAhead reads files, several of them at the same time (the constant `parallel`). The channel that it
// returns has the files in the order of the segments. The channel is closed after the last file, or when ctx is
// done.
func (r *run) readAhead(ctx context.Context, segments []client.Segment, decoder *zstd.Decoder) <-chan chan file {
	files := make(chan chan file, parallel-1) // the receiver holds one more file
	go func() {
		defer close(files)
		for _, s := range segments {
			read := make(chan file, 1)
			select {
			case files <- read:
			case <-ctx.Done():
				return
			}
			go func() { read <- r.read(ctx, s, decoder) }()
		}
	}()
	return files
}

// read fetches and decodes one file.
func (r *run) read(ctx context.Context, s client.Segment, decoder *zstd.Decoder) file {
	packed, err := r.source.Segment(ctx, s)
	if err != nil {
		return file{err: err}
	}
	entries, err := unpack(s, packed, decoder)
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", client.ErrSegment, s.Path, err)
	}
	return file{s, entries, err}
}

// newDecoder returns a decoder that never writes more bytes than its buffer has room for, even if a file says that its
// output is shorter.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderConcurrency(parallel))
}

// unpack returns the entries of a file. The segment says how many entries and bytes the file has, and which ids it may
// have. If the segment is wrong, or if the ids are not in order, unpack returns an error.
func unpack(s client.Segment, packed []byte, decoder *zstd.Decoder) ([]Entry, error) {
	// The client has already refused segments whose UncompressedBytes are too many.
	lines, err := decoder.DecodeAll(packed, make([]byte, 0, s.UncompressedBytes))
	if err != nil {
		return nil, err
	}
	if int64(len(lines)) != s.UncompressedBytes {
		return nil, fmt.Errorf("%w: the file has %d bytes of lines, want %d", ErrEntry, len(lines), s.UncompressedBytes)
	}
	var entries []Entry
	before, latest := "", Latest()
	for line := range bytes.Lines(lines) {
		e, err := parseEntry(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return nil, err
		}
		if e.ID <= before || e.ID < s.From || e.ID > s.To {
			return nil, fmt.Errorf("%w: asset %s is out of order", ErrEntry, e.ID)
		}
		if err := e.until(latest); err != nil {
			return nil, err
		}
		before = e.ID
		entries = append(entries, e)
	}
	if int64(len(entries)) != s.Assets {
		return nil, fmt.Errorf("%w: the file has %d assets, want %d", ErrEntry, len(entries), s.Assets)
	}
	return entries, nil
}

// otherData takes an error by which the registry refused a position. If the cookie SERVER_ID of the answer names other
// data, otherData adds ErrOtherData to the error. Without this cookie, the answer does not prove that the data differ.
func (r *run) otherData(err error) error {
	refusal, ok := errors.AsType[*client.Error](err)
	if ok && errors.Is(err, client.ErrStartOver) && refusal.ServerID != "" &&
		refusal.ServerID != r.State().Position.ServerID {
		return fmt.Errorf("%w: %w", ErrOtherData, err)
	}
	return err
}
