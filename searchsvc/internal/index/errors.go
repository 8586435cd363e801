package index

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
)

// errorCallback is the name by which scorch finds the function that it calls for errors in the background.
const errorCallback = "asset-registry"

// watched has the open indexes by their directories. It is global, because scorch has one registry of callbacks for all
// indexes.
var watched struct {
	once    sync.Once
	mu      sync.Mutex
	indexes map[string]*Index
}

// watch makes scorch report its background errors to x.
func watch(dir string, x *Index) {
	watched.once.Do(func() {
		scorch.RegistryAsyncErrorCallbacks[errorCallback] = backgroundError
		useFormat()
	})
	watched.mu.Lock()
	defer watched.mu.Unlock()
	if watched.indexes == nil {
		watched.indexes = map[string]*Index{}
	}
	watched.indexes[dir] = x
}

func unwatch(dir string) {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	delete(watched.indexes, dir)
}

// watchedAt returns the open index in a directory, or nil.
func watchedAt(dir string) *Index {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	return watched.indexes[dir]
}

func backgroundError(err error, dir string) {
	x := watchedAt(dir)
	if x == nil {
		return
	}
	if errors.Is(err, scorch.ErrAsyncPanic) {
		x.damage(err)
		return
	}
	x.failed.Store(&err)
}

// verifyFiles compares the content of each file of a snapshot with the checksum at the end of the file. Scorch maps
// the files into memory without this check. verifyFiles ignores files outside the snapshot: a killed process left
// them, and scorch removes them.
func verifyFiles(snapshot *scorch.IndexSnapshot) error {
	for _, s := range snapshot.Segments() {
		if file, ok := s.Segment().(segment.PersistedSegment); ok {
			if err := verifyFile(file.Path()); err != nil {
				return err
			}
		}
	}
	return nil
}

func verifyFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < crc32.Size {
		return fmt.Errorf("%w: %s has %d bytes", ErrDamaged, filepath.Base(name), info.Size())
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyN(sum, file, info.Size()-crc32.Size); err != nil {
		return err
	}
	want, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if got := sum.Sum(nil); !bytes.Equal(got, want) {
		return fmt.Errorf("%w: %s has the checksum %x, want %x", ErrDamaged, filepath.Base(name), got, want)
	}
	return nil
}
