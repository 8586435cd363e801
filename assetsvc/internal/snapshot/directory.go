package snapshot

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"asset-registry/shared/durable"
	"asset-registry/shared/export"
	"asset-registry/shared/filelink"
)

const (
	manifestEnd = ".json"
	segmentEnd  = ".ndjson.zst"
	hashDigits  = 64
)

// Interval returns the time between two snapshots. 0: they are made on demand only.
func (k *Keeper) Interval() time.Duration { return k.o.Interval }

// Newest returns the newest snapshot of the directory, made by any process. It returns ErrNone if there is
// none.
func (k *Keeper) Newest() (Manifest, error) { return k.newestIn(k.manifests()) }

// NewestCopies returns the manifest of the newest whole copies, made by any process. It returns ErrNone if
// there are none.
func (k *Keeper) NewestCopies() (Manifest, error) { return k.newestIn(k.copies()) }

// newestIn returns the newest manifest of a directory.
func (k *Keeper) newestIn(dir string) (m Manifest, err error) {
	for range newestLooks {
		if m, err = k.lookForNewest(dir); !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	return m, err
}

// newestLooks is the number of attempts to read the newest manifest, if other processes remove manifests
// meanwhile.
const newestLooks = 3

func (k *Keeper) lookForNewest(dir string) (Manifest, error) {
	begun, err := list(dir)
	if err != nil {
		return Manifest{}, err
	}
	if len(begun) == 0 {
		return Manifest{}, ErrNone
	}
	last := begun[len(begun)-1]
	k.mu.Lock()
	defer k.mu.Unlock()
	newest := k.newest[dir]
	if newest.Begun != last {
		if newest, err = read(dir, last); err != nil {
			return Manifest{}, err
		}
		k.newest[dir] = newest
	}
	if !k.shows(newest) {
		return Manifest{}, ErrNone
	}
	return newest, nil
}

// shows reports whether a snapshot hides the same groups of fields as a new snapshot would hide.
func (k *Keeper) shows(m Manifest) bool { return slices.Equal(m.Hidden, k.o.Hidden) }

// Segment opens the segment with the given hash. It returns ErrNone if the segment does not exist. The open file
// stays readable after its snapshot is removed.
func (k *Keeper) Segment(sha256 string) (*os.File, error) { return open(sha256, k.segment(sha256)) }

// Copy opens the whole copy with the given name and hash. It returns ErrNone if the copy does not exist. The open
// file stays readable after its snapshot is removed; then the file has no name in the directory.
func (k *Keeper) Copy(sha256, name string) (*os.File, error) {
	if !slices.ContainsFunc(export.Whole, func(f export.Form) bool { return f.Name == name }) {
		return nil, ErrNone
	}
	return open(sha256, k.copy(sha256, name))
}

// open opens a file whose name is a hash. It returns ErrNone if the argument `sha256` is not a hash, or if the file
// does not exist.
func open(sha256, file string) (*os.File, error) {
	if !isHash(sha256) {
		return nil, ErrNone
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	return f, err
}

// isHash reports whether a text has the form of a hash. A text of this form is safe in a path: it cannot lead to
// another directory.
func isHash(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == hashDigits && strings.ToLower(text) == text
}

func (k *Keeper) segment(sha256 string) string { return filepath.Join(k.segments(), sha256+segmentEnd) }

func (k *Keeper) copy(sha256, name string) string { return filepath.Join(k.copies(), sha256+"-"+name) }

// manifest returns the file name of the manifest of a snapshot that was begun at the given time. The names sort in the
// order of the times.
func manifest(dir string, begun int64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d", begun)+manifestEnd)
}

// list returns the times when the snapshots in a directory were begun, in order. It reads them from the names
// of the manifests.
func list(dir string) ([]int64, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}
	var begun []int64
	for _, f := range files {
		name, is := strings.CutSuffix(f.Name(), manifestEnd)
		if at, err := strconv.ParseInt(name, 10, 64); is && err == nil {
			begun = append(begun, at)
		}
	}
	slices.Sort(begun)
	return begun, nil
}

// errDamaged is returned for a manifest whose content is not valid.
var errDamaged = errors.New("the manifest of a snapshot is damaged")

// read reads a manifest. An error has the cause errDamaged or fs.ErrNotExist.
func read(dir string, begun int64) (m Manifest, err error) {
	text, err := os.ReadFile(manifest(dir, begun))
	if err != nil {
		return m, fmt.Errorf("read the manifest of a snapshot: %w", err)
	}
	if json.Unmarshal(text, &m) != nil || m.Begun != begun {
		return Manifest{}, errDamaged
	}
	return m, nil
}

// lock locks the directory, so that only one process or call makes snapshots. It returns ErrBusy if another
// process or call has the lock. The function `unlock`, or the end of the process, releases the lock.
func (k *Keeper) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(k.o.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the snapshot directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		err = cmp.Or(busy(err), fmt.Errorf("lock the snapshot directory: %w", err))
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // closing the file releases the lock; an error loses no data
}

// busy returns ErrBusy if err means that another process has a lock, and nil otherwise.
func busy(err error) error {
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	return nil
}

// put writes a segment, unless a file with the same bytes exists. So it also replaces a damaged file.
func (k *Keeper) put(sha256 string, data []byte) error {
	file := k.segment(sha256)
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, data) {
		return nil
	}
	return durable.WriteFile(file, data)
}

// tidy keeps the newest snapshots and the newest whole copies for which the function `belongs` returns true. It
// removes all others, and then all files that no kept manifest names. The caller must hold the lock.
func (k *Keeper) tidy(belongs func(Manifest) bool) error {
	copies := 0
	if k.o.Copies {
		copies = k.o.Keep
	}
	named := map[string]bool{}
	if err := k.tidyManifests(k.manifests(), k.o.Keep, belongs, named); err != nil {
		return err
	}
	if err := k.tidyManifests(k.copies(), copies, belongs, named); err != nil {
		return err
	}
	return errors.Join(removeOthers(k.manifests(), named), removeOthers(k.segments(), named),
		removeOthers(k.copies(), named))
}

// tidyManifests keeps the newest manifests of a directory for which the function `belongs` returns true, at most as
// many as the argument `keep` says. It removes all others. It adds the names of the kept manifests, and of their
// files, to the map `named`.
func (k *Keeper) tidyManifests(dir string, keep int, belongs func(Manifest) bool, named map[string]bool) error {
	begun, err := list(dir)
	if err != nil {
		return err
	}
	kept := 0
	for _, at := range slices.Backward(begun) {
		m, err := read(dir, at)
		if err != nil && !errors.Is(err, errDamaged) {
			return err // not removed, because it may be readable later
		}
		if err != nil || kept == keep || !k.shows(m) || !belongs(m) {
			if err := os.Remove(manifest(dir, at)); err != nil {
				return fmt.Errorf("remove a snapshot: %w", err)
			}
			continue
		}
		kept++
		named[filepath.Base(manifest(dir, at))] = true
		for _, s := range m.Segments {
			named[filepath.Base(k.segment(s.SHA256))] = true
		}
		for _, c := range m.Copies {
			named[filepath.Base(k.copy(c.SHA256, c.Name))] = true
		}
	}
	return nil
}

// removeOthers removes the files of a directory whose names are not in the given map.
func removeOthers(dir string, named map[string]bool) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("tidy the snapshot directory: %w", err)
	}
	var faults []error
	for _, f := range files {
		if !named[f.Name()] {
			faults = append(faults, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return errors.Join(faults...)
}

// Disk returns the total size of all files in the directory, in bytes.
func (k *Keeper) Disk() (bytes int64, err error) {
	for _, dir := range []string{k.manifests(), k.segments(), k.copies()} {
		files, err := os.ReadDir(dir)
		if err != nil {
			return 0, fmt.Errorf("measure the snapshot directory: %w", err)
		}
		for _, f := range files {
			if info, err := f.Info(); err == nil { // an error means that the file was removed meanwhile
				bytes += info.Size()
			}
		}
	}
	return bytes, nil
}

// sumMember is in the text of each asset with a file that the registry keeps. An asset without this text need
// not be parsed.
const sumMember = `"sha256"`

// count adds the files that the assets in the given lines name. It counts a file once for each asset that names the
// file. So count need not remember all files, and its memory does not grow. It ignores malformed documents, which a
// mirror may have received.
func (f *Files) count(lines []byte) {
	for line := range bytes.Lines(lines) {
		if !bytes.Contains(line, []byte(sumMember)) {
			continue
		}
		documents, _ := filelink.Documents(line)
		seen := map[string]bool{}
		for _, d := range documents {
			if id, isKept := d.File(); isKept && !seen[id] {
				seen[id] = true
				f.Count++
				f.Bytes += d.Size
			}
		}
	}
}
