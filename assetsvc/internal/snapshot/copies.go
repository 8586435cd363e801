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
	return k.makeCopies(ctx, newest)
}

// makeCopies makes the whole copies of a snapshot from its segments, so that it need not read the store again.
// The caller must hold the lock.
func (k *Keeper) makeCopies(ctx context.Context, of Manifest) error {
	begun := time.Now()
	m := of
	m.Segments = nil
	var files []*copyFile
	err := k.writeCopies(ctx, of, &files)
	for _, f := range files {
		if err == nil {
			err = f.keep(k, &m)
		}
		_ = f.file.Close() // an error does not matter: the file is complete, or will be removed
	}
	if err == nil {
		var text []byte
		if text, err = json.Marshal(m); err == nil {
			err = durable.WriteFile(manifest(k.copies(), m.Begun), text, fileMode)
		}
	}
	err = errors.Join(err, k.tidy(everyOne)) // also removes unfinished files
	if err != nil {
		return fmt.Errorf("make whole copies: %w", err)
	}
	k.o.Log.Info("whole copies were made", "assets", m.Assets, "seconds", time.Since(begun).Seconds())
	return nil
}

// writeCopies writes the whole copies of a snapshot under temporary names.
func (k *Keeper) writeCopies(ctx context.Context, of Manifest, files *[]*copyFile) error {
	for _, form := range export.Whole {
		f, err := k.newCopyFile(form)
		if err != nil {
			return err
		}
		*files = append(*files, f)
		if f.export, err = form.Open(f.buffer); err != nil {
			return err
		}
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer decoder.Close()
	p := &pace{store: k.store, pause: k.pause, upto: of.Position, beside: true}
	r := segmentReader{keeper: k, decoder: decoder}
	for _, s := range of.Segments {
		begun := time.Now()
		text, err := r.read(s)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			if err := addLine(*files, bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
				return err
			}
		}
		if err := p.look(ctx); err != nil {
			return err
		}
		if err := p.rest(ctx, time.Since(begun)); err != nil {
			return err
		}
	}
	for _, f := range *files {
		if err := errors.Join(f.export.Close(), f.buffer.Flush(), f.file.Sync()); err != nil {
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

// Write implements io.Writer.
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
