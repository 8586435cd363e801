package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"asset-registry/shared/durable"
	"asset-registry/shared/export"
)

// lacksCopies reports whether the newest snapshot should have whole copies, but has none.
func (k *Keeper) lacksCopies() bool {
	if !k.o.Copies {
		return false
	}
	newest, err := k.Newest()
	copies, errCopies := k.NewestCopies()
	return err == nil && (errCopies != nil || copies.Begun != newest.Begun)
}

// makeMissingCopies makes the whole copies of the newest snapshot if they are missing. An earlier attempt may
// have failed, or may have been interrupted.
func (k *Keeper) makeMissingCopies(ctx context.Context) error {
	if !k.lacksCopies() {
		return nil
	}
	unlock, err := k.lock()
	if err != nil {
		return err
	}
	defer unlock()
	newest, err := k.Newest()
	if err != nil {
		return err
	}
	c := k.beginCopies(ctx)
	for _, s := range newest.Segments {
		c.add(s)
	}
	return errors.Join(c.keep(newest), k.tidy(everyOne))
}

// mostBehind is the number of segments that the whole copies may be behind their snapshot. If the copies are further
// behind, the maker of the snapshot waits. This many segments have at most 16 GiB of lines.
const mostBehind = 4096

// copies makes the whole copies of a snapshot from its segments, so that it need not read the store. It works at
// the same time as the maker of the snapshot. A nil *copies makes nothing.
type copies struct {
	keeper   *Keeper
	begun    time.Time
	stop     context.CancelFunc
	segments chan Segment
	files    []*copyFile
	ended    chan error // the result of write
}

// beginCopies begins whole copies if the options ask for them. The caller must hold the lock, and must call keep or
// drop.
func (k *Keeper) beginCopies(ctx context.Context) *copies {
	if !k.o.Copies {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	c := &copies{
		keeper: k, begun: time.Now(), stop: stop, segments: make(chan Segment, mostBehind), ended: make(chan error, 1),
	}
	go func() {
		err := c.write(ctx)
		if err != nil {
			c.remove()
		}
		for range c.segments { // drops the rest: the maker of the snapshot must not wait for copies that have failed
		}
		c.ended <- err
	}()
	return c
}

// add adds the next segment of the snapshot.
func (c *copies) add(s Segment) {
	if c != nil {
		c.segments <- s
	}
}

// keep waits until the copies are complete, and publishes them as the copies of the snapshot. The method `tidy`
// removes unfinished files later.
func (c *copies) keep(of Manifest) error {
	if c == nil {
		return nil
	}
	err := c.wait()
	if err == nil {
		err = c.publish(of)
	}
	if err != nil {
		return fmt.Errorf("make whole copies: %w", err)
	}
	c.keeper.o.Log.Info("whole copies were made", "assets", of.Assets, "seconds", time.Since(c.begun).Seconds())
	return nil
}

// drop ends the copies when their snapshot has failed. The method `tidy` removes unfinished files later.
func (c *copies) drop() {
	if c != nil {
		c.stop()
		_ = c.wait() // the error of the snapshot is reported instead
	}
}

// remove removes unfinished files, so that the snapshot has room on a full disk.
func (c *copies) remove() {
	for _, f := range c.files {
		_ = os.Remove(f.file.Name()) // tidy removes what remains
		_ = f.file.Close()           // only now does the removed file free its space on the disk
	}
}

// wait waits until the files are complete, and closes them.
func (c *copies) wait() error {
	close(c.segments)
	err := <-c.ended
	c.stop()
	for _, f := range c.files {
		_ = f.file.Close() // an error does not matter: the file is synced, or removed
	}
	return err
}

// publish gives the files their names, and writes the manifest.
func (c *copies) publish(of Manifest) error {
	of.Segments = nil
	for _, f := range c.files {
		if err := f.keep(c.keeper, &of); err != nil {
			return err
		}
	}
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return durable.WriteFile(manifest(c.keeper.copies(), of.Begun), text)
}

// write writes the files under temporary names.
func (c *copies) write(ctx context.Context) error {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer decoder.Close()
	r := segmentReader{keeper: c.keeper, decoder: decoder}
	for s := range c.segments {
		begun := time.Now()
		if err := c.open(); err != nil {
			return err
		}
		text, err := r.read(s)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			if err := addLine(c.files, bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
				return err
			}
		}
		// After each segment, this loop rests half as long as it worked. The maker of the snapshot rests longer while
		// clients write, but this loop does not: the copies would take three times as long, and writes would gain
		// little (docs/data.md, "Cost").
		if err := c.keeper.pause(ctx, time.Since(begun)/2); err != nil {
			return err
		}
	}
	if err := c.open(); err != nil { // there are no segments
		return err
	}
	for _, f := range c.files {
		if err := errors.Join(f.export.Close(), f.buffer.Flush(), f.file.Sync()); err != nil {
			return err
		}
	}
	return nil
}

// open creates the files, unless it was called before. Before the first call, the first segment must have come, or
// the snapshot must have ended without segments. Earlier, the maker of the snapshot would remove the files when it
// tidies the directory.
func (c *copies) open() error {
	if len(c.files) > 0 {
		return nil
	}
	for _, form := range export.Whole {
		f, err := c.keeper.newCopyFile(form)
		if err != nil {
			return err
		}
		c.files = append(c.files, f)
		if f.export, err = form.Open(f.buffer); err != nil {
			return err
		}
	}
	return nil
}

// addLine adds an asset to each file, if searches can find the asset.
func addLine(files []*copyFile, line []byte) error {
	a, isFound, err := export.Read(line)
	if err != nil || !isFound {
		return err
	}
	for _, f := range files {
		if err := f.export.Add(a); err != nil {
			return err
		}
	}
	return nil
}

// segmentReader reads one segment after the other into the same buffers.
type segmentReader struct {
	keeper     *Keeper
	decoder    *zstd.Decoder
	file, text []byte
}

// read returns the lines of a segment. They are valid until the next call.
func (r *segmentReader) read(s Segment) ([]byte, error) {
	from, err := r.keeper.Segment(s.SHA256)
	if err != nil {
		return nil, err
	}
	buffer := bytes.NewBuffer(r.file[:0])
	_, err = buffer.ReadFrom(io.LimitReader(from, s.Bytes+1))
	r.file = buffer.Bytes()
	if err := errors.Join(err, from.Close()); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(r.file); hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, fmt.Errorf("segment %s is damaged", s.SHA256) // the next snapshot repairs it
	}
	r.text, err = r.decoder.DecodeAll(r.file, r.text[:0])
	return r.text, err
}

// Limits for writing a whole copy.
const (
	copyBuffer = 256 << 10 // size of the buffer of one file, in bytes
	copySync   = 8 << 20   // bytes from one sync to the next; with small syncs, other writers of the disk wait less
)

// copyFile is a whole copy that is being written.
type copyFile struct {
	name   string
	file   *os.File
	export *export.Export
	buffer *bufio.Writer
	sum    hash.Hash
	bytes  int64
	dirty  int // number of bytes that are written, but not synced
}

func (k *Keeper) newCopyFile(form export.Form) (*copyFile, error) {
	file, err := os.CreateTemp(k.copies(), form.Name+durable.Unfinished)
	if err != nil {
		return nil, err
	}
	f := &copyFile{name: form.Name, file: file, sum: sha256.New()}
	f.buffer = bufio.NewWriterSize(f, copyBuffer)
	return f, nil
}

func (f *copyFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	f.sum.Write(p[:n]) // Write of a hash never fails
	f.bytes += int64(n)
	if f.dirty += n; err == nil && f.dirty >= copySync {
		err, f.dirty = f.file.Sync(), 0
	}
	return n, err
}

// keep renames a complete and synced file to its final name, and adds it to the manifest. If a file with the
// same bytes exists already, that file stays, so that downloads of it can go on.
func (f *copyFile) keep(k *Keeper, m *Manifest) error {
	c := Copy{Name: f.name, SHA256: hex.EncodeToString(f.sum.Sum(nil)), Bytes: f.bytes, Rows: f.export.Rows()}
	m.Copies = append(m.Copies, c)
	if k.isWhole(c) {
		return nil
	}
	return durable.Rename(f.file.Name(), k.copy(c.SHA256, c.Name))
}

// isWhole reports whether the file of a copy exists and is undamaged.
func (k *Keeper) isWhole(c Copy) bool {
	f, err := k.Copy(c.SHA256, c.Name)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return err == nil && n == c.Bytes && hex.EncodeToString(sum.Sum(nil)) == c.SHA256
}
