package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
)

// verifyDepth says how much of a file verify reads.
type verifyDepth bool

const (
	quick verifyDepth = false // all pages but the leaves, which hold the data
	full  verifyDepth = true  // every page in use
)

const (
	maxFaults = 20 // maximum number of faults that verify returns
	maxDepth  = 64 // the greatest depth of a tree; no valid file has more
)

// The file format of bbolt, in the byte order of the machine.
const (
	headerSize  = 16 // header of a page: id 8, flags 2, count 2, overflow 4
	elementSize = 16 // a branch's element: pos 4, ksize 4, id 8; a leaf's: flags 4, pos 4, ksize 4, vsize 4
	metaSize    = 64
	bucketSize  = 16 // root 8, sequence 8
	idSize      = 8

	branchFlag   = 0x01
	leafFlag     = 0x02
	metaFlag     = 0x04
	freelistFlag = 0x10
	bucketFlag   = 0x01 // flag of an element

	magic      = 0xED0CDAED
	version    = 2
	noFreelist = math.MaxUint64
	manyFree   = 0xFFFF // the count in the header if the list of free pages begins with the real count
)

var native = binary.NativeEndian

// page is a page with its overflow pages.
type page struct {
	id    uint64
	flags uint16
	count int
	data  []byte // the page's bytes with the header; nil for a leaf that is not read
}

// meta is the content of a meta page.
type meta struct {
	pageSize                    int64
	root, freelist, pages, txid uint64
}

// verifier visits the pages of a file. It visits each page once, so it ends even
// if pages refer to each other in a circle.
type verifier struct {
	file   io.ReaderAt
	depth  verifyDepth
	meta   meta
	free   map[uint64]bool
	seen   []uint64 // a bit for each page
	faults []error
}

// verify returns the faults of a file that no process writes to: at depth quick
// only the first fault, at depth full up to maxFaults faults.
func verify(file *os.File, depth verifyDepth) []error {
	info, err := file.Stat()
	if err != nil {
		return []error{err}
	}
	if info.Size() == 0 {
		return []error{errEmpty}
	}
	v := &verifier{file: file, depth: depth, free: map[uint64]bool{}}
	if v.meta, err = readMeta(file); err != nil {
		return []error{err}
	}
	if need := int64(v.meta.pages) * v.meta.pageSize; info.Size() < need {
		return []error{fmt.Errorf("%w: it is cut off, and has %d of %d bytes", ErrDamaged, info.Size(), need)}
	}
	v.seen = make([]uint64, v.meta.pages/64+1)
	v.freelist()
	v.tree(v.meta.root, rootBucket)
	return v.faults
}

// readMeta returns the newer of the file's two meta pages. Both must be valid. If one is
// damaged, bbolt would use the other page, which perhaps lacks the last change.
func readMeta(file io.ReaderAt) (meta, error) {
	first, err := metaAt(file, 0, 0)
	if err != nil {
		return meta{}, err
	}
	second, err := metaAt(file, 1, first.pageSize)
	if err != nil {
		return meta{}, err
	}
	if second.pageSize != first.pageSize {
		return meta{}, fmt.Errorf("%w: its two meta pages have different page sizes", ErrDamaged)
	}
	if second.txid > first.txid {
		return second, nil
	}
	return first, nil
}

func metaAt(file io.ReaderAt, id uint64, pageSize int64) (meta, error) {
	text := make([]byte, headerSize+metaSize)
	if _, err := file.ReadAt(text, int64(id)*pageSize); err != nil && !errors.Is(err, io.EOF) {
		return meta{}, err
	}
	sum := fnv.New64a()
	sum.Write(text[headerSize : headerSize+metaSize-8])
	fields := text[headerSize:]
	m := meta{
		pageSize: int64(native.Uint32(fields[8:])),
		root:     native.Uint64(fields[16:]),
		freelist: native.Uint64(fields[32:]),
		pages:    native.Uint64(fields[40:]),
		txid:     native.Uint64(fields[48:]),
	}
	switch {
	case native.Uint32(fields) != magic || native.Uint32(fields[4:]) != version:
		return meta{}, fmt.Errorf("%w: meta page %d is invalid, or the file is no database", ErrDamaged, id)
	case sum.Sum64() != native.Uint64(fields[56:]), native.Uint64(text) != id, native.Uint16(text[8:]) != metaFlag:
		return meta{}, fmt.Errorf("%w: meta page %d is invalid", ErrDamaged, id)
	case m.pageSize < headerSize+metaSize || m.pages < 2 || m.pages > math.MaxInt64/uint64(m.pageSize):
		return meta{}, fmt.Errorf("%w: meta page %d is invalid", ErrDamaged, id)
	}
	return m, nil
}

// fault notes damage of a page.
func (v *verifier) fault(id uint64, format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf("%w: page %d: %s", ErrDamaged, id, fmt.Sprintf(format, args...)))
}

// The method `enough` reports whether the verification can end.
func (v *verifier) enough() bool {
	return len(v.faults) >= maxFaults || v.depth == quick && len(v.faults) > 0
}

// page reads a page of a bucket. It notes a fault and returns false if the page does not exist, has another id,
// or was visited before.
func (v *verifier) page(id uint64, in bucketKind) (page, bool) {
	head, ok := v.header(id)
	if !ok {
		return page{}, false
	}
	p := page{id: id, flags: native.Uint16(head[8:]), count: int(native.Uint16(head[10:]))}
	overflow := uint64(native.Uint32(head[12:]))
	if id+overflow >= v.meta.pages {
		v.fault(id, "it ends after the last page of the file")
		return page{}, false
	}
	for i := id; i <= id+overflow; i++ {
		if !v.visit(i) {
			return page{}, false
		}
	}
	if v.depth == quick && p.flags == leafFlag && in == dataBucket {
		return p, true
	}
	p.data = make([]byte, int64(overflow+1)*v.meta.pageSize)
	if _, err := v.file.ReadAt(p.data, int64(id)*v.meta.pageSize); err != nil {
		v.fault(id, "%v", err)
		return page{}, false
	}
	return p, true
}

func (v *verifier) header(id uint64) ([]byte, bool) {
	if id < 2 || id >= v.meta.pages {
		v.fault(id, "something refers to it, and there is no such page")
		return nil, false
	}
	head := make([]byte, headerSize)
	if _, err := v.file.ReadAt(head, int64(id)*v.meta.pageSize); err != nil {
		v.fault(id, "%v", err)
		return nil, false
	}
	if found := native.Uint64(head); found != id {
		v.fault(id, "it says that it is page %d", found)
		return nil, false
	}
	return head, true
}

// visit marks a page as in use. If the page does not exist, is free or is
// already in use, visit notes a fault and returns false.
func (v *verifier) visit(id uint64) bool {
	switch {
	case id < 2 || id >= v.meta.pages:
		v.fault(id, "something refers to it, and there is no such page")
	case v.free[id]:
		v.fault(id, "it is in use and free")
	case v.seen[id/64]&(1<<(id%64)) != 0:
		v.fault(id, "it is in use twice")
	default:
		v.seen[id/64] |= 1 << (id % 64)
		return true
	}
	return false
}

// freelist reads the list of free pages.
func (v *verifier) freelist() {
	if v.meta.freelist == noFreelist {
		return
	}
	p, ok := v.page(v.meta.freelist, dataBucket)
	if !ok {
		return
	}
	if p.flags != freelistFlag {
		v.fault(p.id, "it is not the list of free pages")
		return
	}
	list, count := p.data[headerSize:], uint64(p.count)
	if p.count == manyFree {
		count, list = native.Uint64(list), list[idSize:]
	}
	if count > uint64(len(list)/idSize) {
		v.fault(p.id, "the list of free pages is longer than its page")
		return
	}
	last := uint64(1)
	for i := range count {
		id := native.Uint64(list[i*idSize:])
		if id <= last || id >= v.meta.pages || v.seen[id/64]&(1<<(id%64)) != 0 {
			v.fault(p.id, "the list of free pages has page %d, which cannot be free", id)
			return
		}
		v.free[id], last = true, id
	}
}

// tree verifies the pages of a bucket.
func (v *verifier) tree(root uint64, in bucketKind) {
	if p, ok := v.page(root, in); ok {
		v.node(p, in, span{}, 0)
	}
}

// bucketKind says which bucket a page belongs to.
type bucketKind bool

const (
	dataBucket bucketKind = false // its values are data
	rootBucket bucketKind = true  // its values are the data buckets
)

// span limits the keys of a part of a tree: low <= key < high. A nil means no limit.
type span struct{ low, high []byte }

func (v *verifier) node(p page, in bucketKind, keys span, depth int) {
	switch {
	case v.enough():
	case depth > maxDepth:
		v.fault(p.id, "the tree is too deep")
	case p.flags == branchFlag:
		v.branch(p, in, keys, depth)
	case p.flags == leafFlag:
		if p.data == nil {
			return
		}
		v.leaf(p.id, p.data, p.count, in, keys)
	default:
		v.fault(p.id, "its type is %#x, not branch or leaf", p.flags)
	}
}

func (v *verifier) branch(p page, in bucketKind, keys span, depth int) {
	entries, ok := v.elements(p.id, p.data, p.count, branchFlag, keys)
	if !ok || p.count == 0 {
		v.fault(p.id, "the branch has no valid child")
		return
	}
	// All leaves have the same depth, so all children have the type of the first.
	head, ok := v.header(entries[0].child)
	if !ok {
		return
	}
	skip := v.depth == quick && native.Uint16(head[8:]) == leafFlag && in == dataBucket
	for i, e := range entries {
		if v.enough() {
			return
		}
		if skip {
			v.visit(e.child)
			continue
		}
		within := span{e.key, keys.high}
		if i+1 < len(entries) {
			within.high = entries[i+1].key
		}
		if child, ok := v.page(e.child, in); ok {
			v.node(child, in, within, depth+1)
		}
	}
}

func (v *verifier) leaf(id uint64, data []byte, count int, in bucketKind, keys span) {
	entries, ok := v.elements(id, data, count, leafFlag, keys)
	if !ok {
		return
	}
	for _, e := range entries {
		switch {
		case e.bucket != (in == rootBucket):
			v.fault(id, "the key %x should be a bucket and is none, or the reverse", e.key)
		case in == dataBucket:
		case len(e.value) < bucketSize:
			v.fault(id, "the bucket %q is cut off", e.key)
		case native.Uint64(e.value) != 0:
			v.tree(native.Uint64(e.value), dataBucket)
		case len(e.value) < bucketSize+headerSize || native.Uint16(e.value[bucketSize+8:]) != leafFlag:
			v.fault(id, "the bucket %q is cut off", e.key)
		default: // a small bucket is stored in the value itself
			inline := e.value[bucketSize:]
			v.leaf(id, inline, int(native.Uint16(inline[10:])), dataBucket, span{})
		}
		if v.enough() {
			return
		}
	}
}

// entry is an element of a page.
type entry struct {
	key, value []byte
	child      uint64 // only in a branch: id of the child page
	bucket     bool   // only in a leaf: the value is a bucket
}

// elements returns the elements of a page. It notes a fault and returns false if an element points out of the
// page or is out of order.
func (v *verifier) elements(id uint64, data []byte, count int, kind uint16, keys span) ([]entry, bool) {
	if headerSize+count*elementSize > len(data) {
		v.fault(id, "it has more elements than fit")
		return nil, false
	}
	entries := make([]entry, count)
	last, end := keys.low, uint64(len(data))
	for i := range entries {
		at := uint64(headerSize + i*elementSize)
		element, e := data[at:], &entries[i]
		var from, keySize, valueSize uint64
		if kind == branchFlag {
			from, keySize = at+uint64(native.Uint32(element)), uint64(native.Uint32(element[4:]))
			e.child = native.Uint64(element[8:])
		} else {
			e.bucket = native.Uint32(element)&bucketFlag != 0
			from, keySize = at+uint64(native.Uint32(element[4:])), uint64(native.Uint32(element[8:]))
			valueSize = uint64(native.Uint32(element[12:]))
		}
		if from < uint64(headerSize+count*elementSize) || from+keySize+valueSize > end {
			v.fault(id, "element %d points out of the page", i)
			return nil, false
		}
		e.key, e.value = data[from:from+keySize], data[from+keySize:from+keySize+valueSize]
		order := bytes.Compare(last, e.key)
		if order > 0 || order == 0 && i > 0 || keys.high != nil && bytes.Compare(e.key, keys.high) >= 0 {
			v.fault(id, "element %d is out of order", i)
			return nil, false
		}
		last = e.key
	}
	return entries, true
}
