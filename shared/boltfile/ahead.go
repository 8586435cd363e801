package boltfile

import (
	"bytes"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// leafPages is the number of pages that Ahead requests for each leaf. Ahead does not read the real number. bbolt puts
// at least two values into a leaf. With two values of 4 KiB, a leaf has three pages.
const leafPages = 3

// maxOverflow is larger than the number of overflow pages of any branch.
const maxOverflow = 256

// maxAheads is the maximum number of calls of Ahead that read at the same time. On a disk that hangs, each holds a
// thread.
const maxAheads = 16

// Ahead asks the kernel to read leaves of a bucket: the leaf with the key `from` and the leaves after it. The argument
// `count` is the maximum number of leaves. Ahead does not wait for the leaves. Without Ahead, a walk through a bucket
// that is not in memory waits for each page. The whole thread waits too, because bbolt maps the file. Ahead never
// fails: it skips pages that it cannot read.
func (f *File) Ahead(tx *bbolt.Tx, bucket, from []byte, count int) {
	defer f.aheads.Add(-1)
	if f.aheads.Add(1) > maxAheads {
		return
	}
	b := tx.Bucket(bucket)
	if b == nil || b.RootPage() == 0 { // the bucket is stored within another page
		return
	}
	a := reader{file: f.own, pageSize: int64(tx.DB().Info().PageSize), left: count, ask: willNeed}
	a.visit(uint64(b.RootPage()), from, 0)
}

// reader asks the kernel to read leaves of a bucket into memory.
type reader struct {
	file     *os.File
	pageSize int64
	left     int // number of further leaves that the reader may request
	ask      func(file *os.File, from, size int64)
}

// visit asks for the leaves below a branch, from the leaf with the given key on.
func (a *reader) visit(id uint64, from []byte, depth int) {
	children := a.branch(id)
	byKey := func(e entry, key []byte) int { return bytes.Compare(e.key, key) }
	first, found := slices.BinarySearchFunc(children, from, byKey)
	if !found {
		first = max(0, first-1)
	}
	if len(children) == 0 || depth > maxDepth {
		return
	}
	leaves := a.kind(children[first].child) == leafFlag // all leaves have the same depth
	for _, e := range children[first:] {
		switch {
		case a.left <= 0:
			return
		case leaves:
			a.ask(a.file, int64(e.child)*a.pageSize, leafPages*a.pageSize)
			a.left--
		default:
			a.visit(e.child, from, depth+1)
		}
	}
}

// branch returns the children of a page, or none if the page is not a branch.
func (a *reader) branch(id uint64) []entry {
	head := make([]byte, a.pageSize)
	if !a.read(head, id) || native.Uint16(head[8:]) != branchFlag {
		return nil
	}
	data := head
	if overflow := int64(native.Uint32(head[12:])); overflow > maxOverflow {
		return nil // the page is damaged; its next reader gets the error
	} else if overflow > 0 {
		data = make([]byte, (overflow+1)*a.pageSize)
		if !a.read(data, id) {
			return nil
		}
	}
	children, _ := new(verifier).elements(id, data, int(native.Uint16(head[10:])), branchFlag, span{})
	return children
}

// kind returns the flags of a page, 0 if it cannot be read.
func (a *reader) kind(id uint64) uint16 {
	head := make([]byte, headerSize)
	if !a.read(head, id) {
		return 0
	}
	return native.Uint16(head[8:])
}

// read reads the beginning of a page.
func (a *reader) read(into []byte, id uint64) bool {
	_, err := a.file.ReadAt(into, int64(id)*a.pageSize)
	return err == nil && native.Uint64(into) == id
}
