package witness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"asset-registry/shared/durable"
	"asset-registry/shared/translog"
)

// The files of a witness's memory. Each log has one file, with a checksum and the last checkpoint that was
// cosigned.
const (
	lockFile = "lock"
	suffix   = ".checkpoint"

	directoryMode = 0o700
)

// directory is the memory of a witness. Only one process at a time may use it.
type directory struct {
	path string
	lock *os.File
}

// openDirectory creates the directory if it does not exist, and locks it.
func openDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, directoryMode); err != nil {
		return nil, fmt.Errorf("open the state of the witness: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state of the witness: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another witness uses %s: %w", path, err), lock.Close())
	}
	d := &directory{path, lock}
	if err := d.clean(); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// clean removes unfinished files that a killed process left behind.
func (d *directory) clean() error {
	left, err := filepath.Glob(filepath.Join(d.path, "*"+durable.Unfinished+"*"))
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

func (d *directory) close() error { return d.lock.Close() }

// file returns the path of a log's file. The name is a hash, because an origin may contain any character.
func (d *directory) file(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return filepath.Join(d.path, hex.EncodeToString(sum[:])+suffix)
}

// load returns the last cosigned checkpoint of a log. If none was cosigned, it returns the checkpoint of the
// empty log.
func (d *directory) load(origin string) (translog.Checkpoint, error) {
	file, err := os.Open(d.file(origin))
	if errors.Is(err, fs.ErrNotExist) {
		return translog.Checkpoint{Origin: origin, Root: translog.Tree{}.Root()}, nil
	}
	if err != nil {
		return translog.Checkpoint{}, fmt.Errorf("read the state of %q: %w", origin, err)
	}
	data, err := io.ReadAll(io.LimitReader(file, 2*translog.MaxCheckpoint))
	if err := errors.Join(err, file.Close()); err != nil {
		return translog.Checkpoint{}, fmt.Errorf("read the state of %q: %w", origin, err)
	}
	sum, signed, _ := strings.Cut(string(data), "\n")
	text, _, _ := strings.Cut(signed, "\n\n")
	c, err := translog.ParseText(text + "\n")
	if err != nil || sum != checksum(signed) || c.Origin != origin {
		return translog.Checkpoint{}, fmt.Errorf("the state of %q in %s is damaged", origin, d.file(origin))
	}
	return c, nil
}

// save stores a signed checkpoint as the last one of a log. After it has returned nil, the checkpoint survives
// a crash of the machine. After an error, the old or the new one may be stored.
func (d *directory) save(origin string, signed []byte) error {
	return durable.WriteFile(d.file(origin), []byte(checksum(string(signed))+"\n"+string(signed)), 0o600)
}

func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
