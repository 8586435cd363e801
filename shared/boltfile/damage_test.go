package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"asset-registry/shared/testing/expect"
)

var (
	bigBucket   = []byte("big")
	smallBucket = []byte("small")
	testOptions = Options{Format: "format 1", Buckets: [][]byte{bigBucket, smallBucket}}
)

// sample returns the bytes of a file with pages of all kinds: branches, leaves,
// overflow pages, buckets within the root page, and free pages.
func sample(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample")
	f, err := Open(path, testOptions)
	expect.OK(t, err)
	for round := range 3 {
		expect.OK(t, f.Update(func(tx *bbolt.Tx) error {
			var err error
			for i := range 50 {
				value := bytes.Repeat([]byte{byte(round)}, 100+i%7*900)
				err = errors.Join(err, tx.Bucket(bigBucket).Put(fmt.Appendf(nil, "key %06d", i*(round+1)), value))
			}
			return errors.Join(err, tx.Bucket(smallBucket).Put([]byte("k"), []byte("v")))
		}))
	}
	expect.OK(t, f.Close())
	text, err := os.ReadFile(path)
	expect.OK(t, err)
	m, err := readMeta(bytes.NewReader(text))
	expect.OK(t, err)
	return text[:int64(m.pages)*m.pageSize]
}

// inMemory returns a directory for thousands of temporary files. It is in memory
// if the machine has /dev/shm.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "boltfile")
	if err != nil {
		return t.TempDir() // on the disk, which is slower
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// use opens a file with these bytes, reads all of it and writes to it. It returns the error of opening. The test
// fails if this error has a stack trace. It also fails if a read or a write finds damage and the method Ready
// returns nil afterwards. A crash ends the test process.
func use(t *testing.T, text []byte) (refused error) {
	t.Helper()
	path := filepath.Join(inMemory(t), "file")
	expect.OK(t, os.WriteFile(path, text, 0o600))
	f, err := Open(path, testOptions)
	if err != nil {
		expect.ErrorIf(t, strings.Contains(err.Error(), "goroutine"),
			"got an error with a stack trace, want one without: %v", err)
		return err
	}
	defer f.Close()
	read := f.View(func(tx *bbolt.Tx) error {
		for _, name := range testOptions.Buckets {
			sum := 0
			if err := tx.Bucket(name).ForEach(func(k, v []byte) error {
				sum += len(bytes.Clone(k)) + len(bytes.Clone(v)) // reads every byte
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	written := f.Batch(t.Context(), func(tx *bbolt.Tx) error {
		for i := range 20 {
			if err := tx.Bucket(bigBucket).Put(fmt.Appendf(nil, "key %06d", i*30), bytes.Repeat([]byte("w"), 3000)); err != nil {
				return err
			}
		}
		return nil
	})
	for doing, err := range map[string]error{"read": read, "write": written} {
		expect.ErrorIf(t, errors.Is(err, ErrDamaged) && f.Ready(t.Context()) == nil,
			"after the %s error %v: got the file ready, want it not ready", doing, err)
	}
	return nil
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	text := sample(t)
	for size := 0; size < len(text); size += os.Getpagesize() {
		expect.Fails(t, use(t, text[:size]), "cut off after %d of %d bytes", size, len(text))
	}
}

func TestZeroedPagesNeverCrash(t *testing.T) {
	text := sample(t)
	page := os.Getpagesize()
	for at := 0; at < len(text); at += page {
		damaged := bytes.Clone(text)
		clear(damaged[at : at+page])
		err := use(t, damaged)
		if flags := binary.NativeEndian.Uint16(text[at+8:]); flags == metaFlag && err == nil {
			t.Errorf("without meta page %d: got no error, want one", at/page)
		}
	}
}

func TestFlippedBytesNeverCrash(t *testing.T) {
	// The test runs on one processor. With two, each unmapping of a file would interrupt the other processor. These
	// interruptions would take most of the test's time.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	text := sample(t)
	page := os.Getpagesize()
	random := rand.New(rand.NewPCG(1, 2))
	kinds := map[uint16]int{}
	for at := 0; at < len(text); at += page {
		kind := binary.NativeEndian.Uint16(text[at+8:])
		if kinds[kind]++; kinds[kind] > 2 {
			continue // two pages of a kind are enough
		}
		var offsets []int
		for i := range headerSize + 2*elementSize { // each byte of the header and of the first elements
			offsets = append(offsets, i)
		}
		for range 10 {
			offsets = append(offsets, random.IntN(page))
		}
		for _, offset := range offsets {
			for _, bits := range []byte{0x01, 0xff} {
				damaged := bytes.Clone(text)
				damaged[at+offset] ^= bits
				err := use(t, damaged)
				if kind == metaFlag && offset < headerSize+metaSize && offset != 10 && offset > 15 && err == nil {
					t.Errorf("byte %d of meta page %d flipped: got no error, want one", offset, at/page)
				}
			}
		}
	}
	for _, kind := range []uint16{branchFlag, leafFlag, metaFlag, freelistFlag} {
		expect.ErrorIf(t, kinds[kind] == 0, "got no page of kind %#x in the sample, want one", kind)
	}
}

func TestABranchThatLeadsInACircleIsRefused(t *testing.T) {
	text := sample(t)
	page := os.Getpagesize()
	for at := 0; at < len(text); at += page {
		if binary.NativeEndian.Uint16(text[at+8:]) != branchFlag {
			continue
		}
		damaged := bytes.Clone(text)
		copy(damaged[at+headerSize+8:], text[at:at+8]) // the first child of the page is now the page itself
		m, err := readMeta(bytes.NewReader(text))
		expect.OK(t, err)
		v := &verifier{file: bytes.NewReader(text), meta: m, free: map[uint64]bool{}, seen: make([]uint64, m.pages/64+1)}
		v.freelist()
		if v.free[uint64(at/page)] {
			continue // a free page is never read
		}
		expect.Err(t, use(t, damaged), ErrDamaged, "page %d", at/page)
	}
}

func TestCheckFindsWhatTheStartDoesNot(t *testing.T) {
	text := sample(t)
	page := os.Getpagesize()
	path := filepath.Join(inMemory(t), "file")
	nothing := func(*bbolt.Tx) []error { return nil }
	expect.OK(t, os.WriteFile(path, text, 0o600))
	if faults := Check(path, testOptions, nothing); len(faults) != 0 {
		t.Fatalf("an undamaged file: got %v, want no faults", faults)
	}
	found := 0
	for at := 2 * page; at < len(text); at += page {
		if binary.NativeEndian.Uint16(text[at+8:]) != leafFlag {
			continue
		}
		damaged := bytes.Clone(text)
		damaged[at+headerSize+7] ^= 0x40 // the first key's position is far outside the page
		expect.OK(t, os.WriteFile(path, damaged, 0o600))
		if faults := Check(path, testOptions, nothing); len(faults) > 0 {
			found++
		}
	}
	expect.ErrorIf(t, found < 10, "got %d damaged leaves found, want at least 10", found)
}

func TestAValueThatCannotBeDecodedEndsWrites(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "file"), testOptions)
	expect.OK(t, err)
	defer f.Close()
	expect.OK(t, f.Ready(t.Context()))
	expect.Err(t, f.View(func(*bbolt.Tx) error { return fmt.Errorf("decode: %w", ErrDamaged) }), ErrDamaged, "")
	expect.Says(t, f.Ready(t.Context()), "damaged", "ready")
	expect.Err(t, f.Update(func(*bbolt.Tx) error { return nil }), ErrDamaged, "write")
	expect.Err(t, f.View(func(*bbolt.Tx) error { return nil }), nil, "read")
}
