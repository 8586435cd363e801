package bulk

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
)

// journalVersion is the version of the format of journals.
const journalVersion = 1

// head is the first line of a journal.
type head struct {
	Import   int    `json:"import"` // the version of the format
	Registry string `json:"registry"`
	Broker   string `json:"broker"`
}

// entry is one line of the journal: a step of a row. A line that has only the members data and access has the form
// of a file of tokens. After a recovery, users may add a line of this form by hand.
type entry struct {
	Reference string `json:"reference,omitempty"`
	sums
	Data   *assetID       `json:"data,omitempty"`
	Access *client.Access `json:"access,omitempty"`

	Base     base               `json:"base,omitempty"`     // the values that were sent
	Gone     bool               `json:"gone,omitempty"`     // the asset was withdrawn
	Name     string             `json:"name,omitempty"`     // key of a document in the row
	Document int                `json:"document,omitempty"` // its number from 1, as the program before this one writes it
	File     *client.StoredFile `json:"file,omitempty"`     // the document's file, which was uploaded
	At       time.Time          `json:"at,omitzero"`        // time of the upload
}

type assetID struct {
	ID string `json:"id"`
}

// progress has the results of former runs for a row.
type progress struct {
	id        string
	sums      sums
	base      base
	gone      bool
	access    client.Access               // the tokens of the asset; if Token is "", the journal does not have them
	documents map[string]documentProgress // by key, or by number
}

type documentProgress struct {
	file client.StoredFile
	at   time.Time
}

// Journal is the file that keeps tokens and progress. Its mode is 0600. Only one process can have it open.
type Journal struct {
	file *os.File
	rows map[string]*progress // the progress of earlier runs, by the reference of the row
	head head

	mu     sync.Mutex
	failed error // error of a failed write, after which nothing more is written
}

var errNoJournal = errors.New("this is not the journal of an import")

// OpenJournal opens the journal of a load, or creates one. It refuses the journal of another registry or
// broker, and every other file. If a killed process has left an incomplete last line, it removes that line.
func OpenJournal(name, registry, broker string) (*Journal, error) {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("open the file of tokens: %w", err)
	}
	j := &Journal{file: file, rows: map[string]*progress{}, head: head{journalVersion, registry, broker}}
	if err := j.start(name); err != nil {
		return nil, errors.Join(fmt.Errorf("open the file of tokens %s: %w", name, err), file.Close())
	}
	return j, nil
}

func (j *Journal) start(name string) error {
	if err := durable.Hold(j.file); err != nil {
		return errors.New("another import uses it")
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode(); !mode.IsRegular() {
		return fmt.Errorf("it is no file (mode %v)", mode)
	}
	if err := durable.Private(j.file); err != nil {
		return err
	}
	end, unended, err := j.read()
	if err != nil {
		return err
	}
	if err := j.file.Truncate(end); err != nil {
		return err
	}
	if _, err := j.file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if unended {
		_, err = j.file.Write([]byte{'\n'})
		return errors.Join(err, j.file.Sync())
	}
	if end > 0 {
		return nil
	}
	_, err = j.file.Write(j.firstLine())
	return errors.Join(err, j.file.Sync(), durable.SyncDirectory(filepath.Dir(name)))
}

func (j *Journal) firstLine() []byte {
	text, _ := json.Marshal(j.head) // a struct of texts and numbers never fails
	return append(text, '\n')
}

// read reads all complete lines, and returns the position after the last of them. A user may have added the last line
// without its end: then the result `unended` is true. The rest of a line that was never synced does not count. The
// rest of a first line must be the beginning of this journal's first line: all else is another file, which the caller
// must not overwrite.
func (j *Journal) read() (end int64, unended bool, err error) {
	in := bufio.NewReaderSize(j.file, 1<<20)
	ids := map[string]*progress{}
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if number == 1 && !bytes.HasPrefix(j.firstLine(), line) {
				return end, false, fmt.Errorf("line 1: %w", errNoJournal)
			}
			if number == 1 || !json.Valid(line) {
				return end, false, nil
			}
			unended, err = true, nil
		}
		if err != nil {
			return end, false, err
		}
		if err := j.take(number, line, ids); err != nil {
			return end, false, fmt.Errorf("line %d: %w", number, err)
		}
		if end += int64(len(line)); unended {
			return end, true, nil
		}
	}
}

// take processes one line. The map `ids` has the progress of rows by the ids of their assets.
func (j *Journal) take(number int, line []byte, ids map[string]*progress) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	if number == 1 {
		var h head
		if err := decoder.Decode(&h); err != nil || h.Import != journalVersion {
			return errNoJournal
		}
		if h != j.head {
			return fmt.Errorf("it is of the registry %s and the broker %s", h.Registry, h.Broker)
		}
		return nil
	}
	var e entry
	if err := decoder.Decode(&e); err != nil {
		return errors.New("this is not a line of the journal of an import")
	}
	row := j.rows[e.Reference]
	if row == nil && e.Reference == "" && e.Data != nil {
		row = ids[e.Data.ID]
	}
	if row == nil && e.Data != nil && e.Reference != "" {
		row = &progress{id: e.Data.ID, sums: e.sums, documents: map[string]documentProgress{}}
		j.rows[e.Reference], ids[row.id] = row, row
	}
	if row == nil {
		return errors.New("it tells about an asset that the lines before do not have")
	}
	if e.Access != nil {
		row.access = *e.Access
	}
	row.gone = row.gone || e.Gone
	if e.Same != "" {
		row.sums, row.base = e.sums, e.Base
	}
	if e.File != nil {
		row.documents[cmp.Or(e.Name, strconv.Itoa(e.Document))] = documentProgress{*e.File, e.At}
	}
	return nil
}

// known returns the progress of a row in former runs, or nil if there is none.
func (j *Journal) known(reference string) *progress { return j.rows[reference] }

// NewJournal returns an empty journal that is no file, for a plan.
func NewJournal() *Journal { return &Journal{rows: map[string]*progress{}} }

// Knows reports whether an earlier run has made the asset of a row.
func (j *Journal) Knows(reference string) bool { return j.rows[reference] != nil }

// IsEmpty reports whether no earlier run has made an asset.
func (j *Journal) IsEmpty() bool { return len(j.rows) == 0 }

// Left returns the references of the journal's assets whose rows a file does not have, in order.
func (j *Journal) Left(c Checked) (references []string) {
	for _, reference := range sortedKeys(j.rows) {
		if _, isThere := c.sums[reference]; !isThere && !j.rows[reference].gone {
			references = append(references, reference)
		}
	}
	return references
}

// add writes an entry, and returns when it is durable. After a failed write it writes nothing more.
func (j *Journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil {
		if _, err = j.file.Write(append(line, '\n')); err == nil {
			err = j.file.Sync()
		}
		j.failed = errs.In(err, "%w", errNotKept)
	}
	return j.failed
}

// errNotKept is the error of a failed write to the journal. It ends the load.
var errNotKept = errors.New("the tokens cannot be kept")

// Close closes the journal.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
