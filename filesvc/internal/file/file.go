// Package file has the rules for the files of documents: what they are, how their bytes arrive, who may read
// them, and when they are deleted (docs/files.md). It knows nothing about HTTP or a database.
package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
)

// State is the state of a file.
type State string

// The states (docs/files.md, "Data").
const (
	Registered State = "registered" // its bytes have not arrived
	Stored     State = "stored"
	Collected  State = "collected" // no document names the file, and it is being deleted
	Removed    State = "removed"   // an administrator has taken it down
)

// File is the metadata of a file.
type File struct {
	ID       string // 32 hexadecimal digits
	Broker   string // the tenant that registered it
	KeyID    string // id of the API key that registered it
	MD5      string // 32 hexadecimal digits; "": not declared, and the bytes have not arrived
	SHA256   string // 64 hexadecimal digits; "": the bytes have not arrived
	Size     int64
	Declared string // the type that the upload declared; "": none
	Detected string // the type that was detected from the bytes
	Title    string // the name, without a path
	Blob     string // the name of the bytes; "": they have not arrived
	State    State
	Touched  time.Time // when it was last registered, uploaded or claimed; whole milliseconds
	Seen     int64     // Reading.Hours when the collector first saw the file unnamed; 0: not since it was last touched
	Named    bool      // a document has named it
	Swept    int64     // number of blobs that unfinished uploads of this file left, and that the sweep has removed
	Revision int64     // 1 for a new file; each change adds 1

	Picture Picture // whether small versions are needed, or made
	Small   string  // the name of the small version's bytes; "": there is none
	Large   string  // the name of the large version's bytes; "": there is none

	Ended int64     // how often something else than the picture has ended its drawing; 0 after the drawer has decided
	Again time.Time // not drawn before this time; whole milliseconds; zero: at once

	RemovedBy string // key of the administrator who removed it; "": it is not removed
	Reason    string // reason of the removal
}

// Picture says whether small versions of a file are needed or made (docs/files.md, "Pictures"). The zero value
// means that no illustration names the file.
type Picture string

// The states of pictures.
const (
	Wanted Picture = "wanted" // an illustration names the file
	Made   Picture = "made"   // the small versions are stored
	Unmade Picture = "unmade" // no small versions can be made of these bytes, or Ended says that they were given up
)

// blobs returns the names of all bytes that a file has.
func (f File) blobs() []string {
	return slices.DeleteFunc([]string{f.Blob, f.Small, f.Large}, func(name string) bool { return name == "" })
}

// Errors that the stores, a Drawer and the function Verified return.
var (
	ErrNoPicture = errors.New("there is no picture in the file, or it takes too much to draw")
	ErrEnded     = errors.New("something else than the picture has ended the drawing")

	ErrNotFound = errors.New("there is no such file")
	ErrExists   = errors.New("the id is taken")
	ErrStale    = errors.New("the file has changed")
	ErrFull     = errors.New("the disk of the files is full")
	ErrSum      = errors.New("the bytes have another SHA-256")
)

// Files stores the metadata of files. It is safe for concurrent use. A change is durable when the call returns.
// After an error that is not named here, the change may have been stored or not.
type Files interface {
	// Create stores a new file of revision 1. It returns ErrExists if the id is taken.
	Create(ctx context.Context, f File) error
	// Get returns a file, or ErrNotFound. It sees every change that was acknowledged before.
	Get(ctx context.Context, id string) (File, error)
	// Replace stores f in place of the file with the same id, if the stored revision is f.Revision-1. It returns
	// ErrStale if the stored revision is different, or if there is no file.
	Replace(ctx context.Context, f File) error
	// Delete deletes the file with the id f.ID, if the stored revision is f.Revision. It returns ErrStale if the
	// stored revision is different, or if there is no file.
	Delete(ctx context.Context, f File) error
	// Page returns at most limit files whose id is greater than the argument `after`, in the order of ids.
	Page(ctx context.Context, after string, limit int) ([]File, error)
	// Own does what Page does, for the files of one broker.
	Own(ctx context.Context, broker, after string, limit int) ([]File, error)
	// Usage returns how many files and bytes a broker has. A process that was killed may leave one more in the count,
	// until Recount.
	Usage(ctx context.Context, broker string) (Usage, error)
	// Recount counts the files of all brokers again. It lasts longer than a change of a file may.
	Recount(ctx context.Context) error
	// IsRemoved reports whether a file with this SHA-256 is in the state Removed. It sees every change that was
	// acknowledged before.
	IsRemoved(ctx context.Context, sha256 string) (bool, error)
}

// Usage says how many files and bytes a broker has.
type Usage struct {
	Waiting int64 // files in the state Registered
	Bytes   int64 // size of all files, except removed files
}

// Usage returns the part of f in the usage of its broker.
func (f File) Usage() (u Usage) {
	switch f.State {
	case Removed:
		return Usage{}
	case Registered:
		u.Waiting = 1
	}
	u.Bytes = f.Size
	return u
}

// Add returns the sum of u and n times v.
func (u Usage) Add(n int64, v Usage) Usage {
	return Usage{u.Waiting + n*v.Waiting, u.Bytes + n*v.Bytes}
}

// Readings stores how far the feed of assets was read.
type Readings interface {
	// Reading returns the newest reading, or the zero value if there was none.
	Reading(ctx context.Context) (Reading, error)
	// SetReading stores a reading. A position lower than the stored one is ignored. Complete and Began are stored unless
	// Complete is zero. Hours stays as it is.
	SetReading(ctx context.Context, r Reading) error
	// PassHour adds 1 to Reading.Hours if this field still has the given value.
	PassHour(ctx context.Context, hours int64) error
}

// Reading says how far the feed of assets was read.
type Reading struct {
	Position int64     // the files of all documents up to this position are marked as named
	Complete time.Time // start of the last reading that reached the end of the feed; whole milliseconds

	// Hours counts hours of the collectors, and no clock of a machine. Between two counts at least hourLeast passes on
	// the monotonic clock of a process.
	Hours int64
	Began int64 // value of Hours shortly before the time Complete
}

// blobForm matches the names of bytes. A name has no path.
var blobForm = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]{16}$`)

// IsBlob reports whether a text is a name of bytes: the id of their file, "-" and 16 hexadecimal digits.
func IsBlob(name string) bool { return blobForm.MatchString(name) }

// ReadRemovals returns the files that NoteRemoval has stored for these ids. The function `read` returns the stored
// text. ReadRemovals leaves out a text that is damaged or cannot be read, and returns an error then. It ends after
// maxFailed such texts.
func ReadRemovals(ids []string, read func(id string) ([]byte, error)) (found []File, err error) {
	var faults []error
	for _, id := range ids {
		var f File
		text, err := read(id)
		if err == nil && (json.Unmarshal(text, &f) != nil || f.ID != id || f.State != Removed) {
			err = fmt.Errorf("the removal %s is damaged: remove the file again, and this note", id)
		}
		if err == nil {
			found = append(found, f)
		} else if faults = append(faults, err); len(faults) == maxFailed {
			break
		}
	}
	return found, errors.Join(faults...)
}

// NoRoom wraps ErrFull into an error that says that a disk or quota is full. It returns other errors, and nil,
// unchanged.
func NoRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Bytes stores the bytes of files. It is safe for concurrent use.
type Bytes interface {
	// Put reads bytes until io.EOF, and stores them under a name that was never used before. The bytes are
	// durable when Put returns. If the reader fails, Put returns its error. If there is no room, it returns
	// ErrFull. After an error, the bytes cannot be read.
	Put(ctx context.Context, name string, from io.Reader) error
	// Open opens bytes for reading, or returns ErrNotFound. The caller closes them.
	Open(ctx context.Context, name string) (Blob, error)
	// Remove removes bytes. It does nothing if they do not exist.
	Remove(ctx context.Context, name string) error
	// Names returns at most limit names that are greater than the argument `after`, sorted.
	Names(ctx context.Context, after string, limit int) ([]string, error)
	// IsBefore reports whether bytes were stored before a time. It returns false if they do not exist.
	IsBefore(ctx context.Context, name string, at time.Time) (bool, error)
	// Tidy removes the unfinished bytes of each call of Put that began before the given time.
	Tidy(ctx context.Context, before time.Time) error
	// NoteRemoval durably stores the metadata of a file that was taken down. A removal that is already stored
	// for the id stays unchanged.
	NoteRemoval(ctx context.Context, f File) error
	// Removals returns all files that NoteRemoval has stored, sorted by id. With an error, it returns those that it
	// could read.
	Removals(ctx context.Context) ([]File, error)
	// Removed returns at most limit ids of files that NoteRemoval has stored. They are greater than the argument
	// `after`, and sorted.
	Removed(ctx context.Context, after string, limit int) ([]string, error)
}

// Blob is an open file of bytes.
type Blob interface{ io.ReadSeekCloser }

// SizeOf returns the number of bytes, and moves to the first byte.
func SizeOf(b Blob) (int64, error) {
	size, err := b.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = b.Seek(0, io.SeekStart)
	}
	return size, err
}

// maxTitle is the maximum number of characters of a title.
const maxTitle = 255

// Title returns the name of an uploaded file without its path, and without characters that are not allowed in a
// name. It returns "file" if only dots remain, or nothing.
func Title(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, name))
	n := 0
	for at := range name {
		if n++; n > maxTitle {
			name = name[:at]
			break
		}
	}
	if strings.Trim(name, ".") == "" {
		return "file"
	}
	return name
}

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
// stays as it is, because a sum for each reading costs processor time.
func verifyWhole(b Blob, of File, unread *atomic.Int64) Blob {
	if _, isLocal := b.(interface{ File() *os.File }); isLocal {
		return b
	}
	return newWhole(b, of, unread)
}

func newWhole(b Blob, of File, unread *atomic.Int64) Blob {
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
