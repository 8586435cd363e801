// Package file has the files of documents: what they are, how bytes come to them, who may see
// them, and when they go (docs/files.md). It knows nothing about HTTP or a database.
package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// State is the state of a file.
type State string

// The states (docs/files.md, "Data").
const (
	Registered State = "registered" // its bytes have not come
	Stored     State = "stored"
	Collected  State = "collected" // nothing names it, and it is being deleted
	Removed    State = "removed"   // an administrator has taken it down
)

// File is the metadata of a file.
type File struct {
	ID       string // 32 hexadecimal digits
	Broker   string // the tenant that registered it
	KeyID    string // of the API key that registered it
	MD5      string // 32 hexadecimal digits; "": not declared, and the bytes have not come
	SHA256   string // 64 hexadecimal digits; "": the bytes have not come
	Size     int64
	Declared string // the type that the upload named; "": none
	Detected string // the type of the bytes
	Title    string // the name, without a path
	Blob     string // the name of the bytes; "": they have not come
	State    State
	Touched  time.Time // registered, uploaded or claimed, whichever is last; in milliseconds
	Named    bool      // a document has named it
	Swept    int64     // how many blobs of uploads that never ended the sweep has removed
	Revision int64     // 1 for a new file; each change adds 1

	Picture Picture // whether small versions are made
	Small   string  // the name of the bytes of the small version; "": there is none
	Large   string  // of the large one

	RemovedBy string // key of the administrator who has removed it; "": nobody has
	Reason    string // of the removal
}

// Picture tells whether a file gets small versions (docs/files.md, "Pictures"). The zero value: no
// illustration names the file.
type Picture string

// The states of pictures.
const (
	Wanted Picture = "wanted" // an illustration names the file
	Made   Picture = "made"   // the small versions are stored
	Unmade Picture = "unmade" // none can be made of these bytes
)

// blobs returns the names of all bytes of a file.
func (f File) blobs() []string {
	return slices.DeleteFunc([]string{f.Blob, f.Small, f.Large}, func(name string) bool { return name == "" })
}

// Errors of the stores, of a Drawer and of Verified.
var (
	ErrNoPicture = errors.New("there is no picture in the file, or it takes too much to draw")

	ErrNotFound = errors.New("there is no such file")
	ErrExists   = errors.New("the id is taken")
	ErrStale    = errors.New("the file has changed")
	ErrFull     = errors.New("the disk of the files is full")
	ErrSum      = errors.New("the bytes have another SHA-256")
)

// Files stores the metadata. It is safe for concurrent use. A change is durable when the call
// returns. After another error than those named, a change may or may not be stored.
type Files interface {
	// Create stores a new file of revision 1. It returns ErrExists if the id is taken.
	Create(ctx context.Context, f File) error
	// Get returns a file, or ErrNotFound. It sees every change that was acknowledged.
	Get(ctx context.Context, id string) (File, error)
	// Replace stores a file if the stored one has the revision before that of f. Otherwise,
	// or if there is none, it returns ErrStale.
	Replace(ctx context.Context, f File) error
	// Delete deletes a file if the stored one has the revision of f. Otherwise, or if there is
	// none, it returns ErrStale.
	Delete(ctx context.Context, f File) error
	// Page returns at most limit files whose id is greater than after, in the order of ids.
	Page(ctx context.Context, after string, limit int) ([]File, error)
	// Usage returns what a broker has.
	Usage(ctx context.Context, broker string) (Usage, error)
	// IsRemoved tells whether a file with this SHA-256 is in the state Removed. It sees every
	// change that was acknowledged.
	IsRemoved(ctx context.Context, sha256 string) (bool, error)
}

// Usage is what a broker has.
type Usage struct {
	Waiting int64 // files in the state Registered
	Bytes   int64 // size of all files, save those that were removed
}

// Readings stores what is known of the feed of assets.
type Readings interface {
	// Reading returns the newest reading; the zero value if there was none.
	Reading(ctx context.Context) (Reading, error)
	// SetReading stores a reading. Each of its fields only grows: a lower value is ignored.
	SetReading(ctx context.Context, r Reading) error
}

// Reading is what is known of the feed of assets.
type Reading struct {
	Position int64     // all files that documents name up to it are marked
	Complete time.Time // when the last reading began that reached the end of the feed; in milliseconds
}

// blobForm is the form of names of bytes. There is no path in it.
var blobForm = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]{16}$`)

// IsBlob tells whether a text is a name of bytes: the id of their file, "-" and 16 hexadecimal digits.
func IsBlob(name string) bool { return blobForm.MatchString(name) }

// ParseRemoval reads what NoteRemoval has stored for an id.
func ParseRemoval(id string, text []byte) (f File, err error) {
	if err := json.Unmarshal(text, &f); err != nil || f.ID != id || f.State != Removed {
		return f, fmt.Errorf("the removal %s is damaged: remove the file again, and this note", id)
	}
	return f, nil
}

// NoRoom adds ErrFull to the error of a full disk or quota. nil stays nil.
func NoRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Bytes stores the bytes of files. It is safe for concurrent use.
type Bytes interface {
	// Put stores what from gives, until io.EOF, under a name that was never used before. The
	// bytes are durable when it returns. If from fails, Put returns its error; without room,
	// ErrFull. After an error nobody can read the bytes.
	Put(ctx context.Context, name string, from io.Reader) error
	// Open opens bytes to be read, or returns ErrNotFound. The caller closes them.
	Open(ctx context.Context, name string) (Blob, error)
	// Remove removes bytes. It is no error if there are none.
	Remove(ctx context.Context, name string) error
	// Names returns at most limit names that are greater than after, in their order.
	Names(ctx context.Context, after string, limit int) ([]string, error)
	// IsBefore tells whether bytes were stored before a time. It is false if there are none.
	IsBefore(ctx context.Context, name string, at time.Time) (bool, error)
	// Tidy removes what calls of Put left that began before a time and never returned.
	Tidy(ctx context.Context, before time.Time) error
	// NoteRemoval stores the metadata of a file that was taken down, durably. If those of its id
	// are there, they stay.
	NoteRemoval(ctx context.Context, f File) error
	// Removals returns all files that NoteRemoval has stored, in the order of their ids.
	Removals(ctx context.Context) ([]File, error)
	// Removed returns at most limit ids of files that NoteRemoval has stored and that are greater
	// than after, in their order.
	Removed(ctx context.Context, after string, limit int) ([]string, error)
}

// Blob is open bytes.
type Blob interface{ io.ReadSeekCloser }

// SizeOf returns the number of all bytes, and goes to the first one.
func SizeOf(b Blob) (int64, error) {
	size, err := b.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = b.Seek(0, io.SeekStart)
	}
	return size, err
}

// maxTitle is the most letters of a title.
const maxTitle = 255

// Title returns the name of an uploaded file without its path and without letters that no
// name should have; "file" if nothing is left.
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
	for utf8.RuneCountInString(name) > maxTitle {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if strings.Trim(name, ".") == "" {
		return "file"
	}
	return name
}
