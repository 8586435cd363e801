package file

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync/atomic"
)

// Verified returns a reader of the bytes of a stored file. If the bytes do not have the file's SHA-256, it
// returns an error instead of io.EOF.
func Verified(from io.Reader, f File) io.Reader { return &verified{from, sha256.New(), f.SHA256} }

type verified struct {
	from io.Reader
	sum  hash.Hash
	want string
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	v.sum.Write(p[:n])
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if failed := checkSum(v.sum, v.want); failed != nil {
		return n, failed
	}
	return n, err
}

func checkSum(sum hash.Hash, want string) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%w: got %s, want %s", ErrSum, got, want)
	}
	return nil
}

// whole is a blob of a store that sends its bytes. If all bytes are read in order and do not have the SHA-256 of the
// file, the last reading fails and gives none, so that no client gets them all.
type whole struct {
	Blob
	of     File
	at     int64
	sum    hash.Hash // of the bytes up to the offset `at`; nil: they were not all read
	failed error
	unread *atomic.Int64 // counts the readings that failed
}

// verifyWhole returns a blob that compares the sum of a reading of the whole file. A blob in a file of this machine
// stays as it is: its bytes go to the connection without a copy.
func verifyWhole(b Blob, of File, unread *atomic.Int64) Blob {
	if _, isLocal := b.(interface{ File() *os.File }); isLocal {
		return b
	}
	return &whole{Blob: b, of: of, sum: sha256.New(), unread: unread}
}

func (w *whole) Read(p []byte) (int, error) {
	if w.failed != nil {
		return 0, w.failed
	}
	n, err := w.Blob.Read(p)
	w.at += int64(n)
	if w.sum == nil || n == 0 {
		return n, err
	}
	if w.sum.Write(p[:n]); w.at < w.of.Size {
		return n, err
	}
	if w.failed = checkSum(w.sum, w.of.SHA256); w.failed != nil {
		w.failed = fmt.Errorf("file %s is damaged: %w", w.of.ID, w.failed)
		w.unread.Add(1)
		return 0, w.failed
	}
	return n, err
}

func (w *whole) Seek(offset int64, whence int) (int64, error) {
	at, err := w.Blob.Seek(offset, whence)
	switch {
	case err == nil && at == 0:
		w.sum = sha256.New()
	case at != w.at:
		w.sum = nil
	}
	w.at, w.failed = at, nil
	return at, err
}
