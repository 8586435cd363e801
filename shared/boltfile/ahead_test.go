package boltfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"go.etcd.io/bbolt"

	"asset-registry/shared/testing/expect"
)

func TestAheadAsksForTheLeavesFromAKeyOn(t *testing.T) {
	bucket := []byte("b")
	f := mustOpen(t, filepath.Join(t.TempDir(), "f"), "test 1", bucket)
	key := func(i int) []byte { return fmt.Appendf(nil, "%05d", i) }
	const keys = 3000
	err := f.Update(func(tx *bbolt.Tx) error {
		for i := range keys {
			if err := tx.Bucket(bucket).Put(key(i*7919%keys), bytes.Repeat([]byte("x"), 2500)); err != nil {
				return err
			}
		}
		return nil
	})
	expect.OK(t, err)
	for _, c := range []struct {
		name   string
		from   []byte
		leaves int
		first  int // the first key whose leaf must be asked for
	}{
		{"the first key", key(0), 2, 0},
		{"no key", nil, 1, 0},
		{"a key within", key(1500), 700, 1500},
		{"a key between two", []byte("01500x"), 2, 1500},
		{"the last key", key(keys - 1), 10, keys - 1},
		{"nothing", key(0), 0, 0},
	} {
		var leaves, last int
		asked := map[string]bool{}
		err := f.View(func(tx *bbolt.Tx) error {
			a := reader{file: f.own, pageSize: int64(tx.DB().Info().PageSize), left: c.leaves}
			a.ask = func(file *os.File, from, size int64) {
				page := make([]byte, size)
				expect.Get(file.ReadAt(page, from))(t)
				entries, ok := new(verifier).elements(2, page, int(native.Uint16(page[10:])), leafFlag, span{})
				if !ok || native.Uint16(page[8:]) != leafFlag {
					t.Fatalf("%s: got a page with flags %d, want a whole leaf", c.name, native.Uint16(page[8:]))
				}
				for _, e := range entries {
					asked[string(e.key)] = true
				}
				leaves++
				last, _ = strconv.Atoi(string(entries[len(entries)-1].key))
			}
			a.visit(uint64(tx.Bucket(bucket).RootPage()), c.from, 0)
			return nil
		})
		expect.OK(t, err)
		if ends := last == keys-1; leaves != c.leaves && !ends {
			t.Errorf("%s: got %d leaves, want %d", c.name, leaves, c.leaves)
		}
		for i := c.first; i <= last && leaves > 0; i++ {
			expect.FatalIf(t, !asked[string(key(i))],
				"%s: the leaf of key %d was not asked for, want all from %d to %d", c.name, i, c.first, last)
		}
		if before := c.first - 9; asked[string(key(before))] { // a key 9 places before c.first is in another leaf
			t.Errorf("%s: the leaf of key %d was asked for, want those from %d on", c.name, before, c.first)
		}
	}
}

func TestAheadBearsDamageAndSmallBuckets(t *testing.T) {
	bucket := []byte("b")
	f := mustOpen(t, filepath.Join(t.TempDir(), "f"), "test 1", bucket)
	ahead := func(name []byte) {
		t.Helper()
		expect.Try(t, f.View(func(tx *bbolt.Tx) error { f.Ahead(tx, name, nil, 10); return nil }))
	}
	ahead(bucket)
	ahead([]byte("none"))
	damaged, err := os.CreateTemp(t.TempDir(), "damaged")
	expect.OK(t, err)
	defer damaged.Close()
	page := make([]byte, 4096)
	native.PutUint64(page, 3)
	native.PutUint16(page[8:], branchFlag)
	native.PutUint16(page[10:], 0xFFFF)
	native.PutUint32(page[12:], 0xFFFFFFFF)
	for _, overflow := range []uint32{0xFFFFFFFF, 2, 0} {
		native.PutUint32(page[12:], overflow)
		expect.Get(damaged.WriteAt(page, 3*4096))(t)
		a := reader{file: damaged, pageSize: 4096, left: 10, ask: func(*os.File, int64, int64) {
			t.Errorf("overflow %d: a leaf was asked for, want none", overflow)
		}}
		a.visit(3, nil, 0)
		a.visit(1<<50, nil, 0)
	}
}
