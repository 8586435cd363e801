package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/testing/expect"
)

var at = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// of returns a file. Each number gives a different id.
func of(n int, state file.State, size int64) file.File {
	return file.File{ID: fmt.Sprintf("%032x", n), Broker: "b1", State: state, Size: size, Touched: at, Revision: 1}
}

// twoFiles returns a store with a registered file, a stored file of 7 bytes and a reading, and the store's path.
func twoFiles(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "files.db")
	s := expect.Get(Open(path, nil, nil))(t)
	t.Cleanup(func() { s.Close() })
	expect.OK(t, s.Create(t.Context(), of(1, file.Registered, 0)), s.Create(t.Context(), of(2, file.Stored, 7)),
		s.SetReading(t.Context(), file.Reading{Position: 1, Complete: at}))
	return s, path
}

func errorOf[T any](_ T, err error) error { return err }

// calls have a call of each method that takes a context. The field `damages` is the bucket whose damage the call must
// notice; nil: none.
var calls = []struct {
	name    string
	damages []byte
	do      func(context.Context, *Store) error
}{
	{"Create", nil, func(ctx context.Context, s *Store) error { return s.Create(ctx, of(3, file.Registered, 0)) }},
	{"Get", filesBucket, func(ctx context.Context, s *Store) error { return errorOf(s.Get(ctx, of(1, "", 0).ID)) }},
	{"Replace", filesBucket, func(ctx context.Context, s *Store) error {
		f := of(1, file.Stored, 5)
		f.Revision = 2
		return s.Replace(ctx, f)
	}},
	{"Delete", filesBucket, func(ctx context.Context, s *Store) error { return s.Delete(ctx, of(1, "", 0)) }},
	{"Page", filesBucket, func(ctx context.Context, s *Store) error { return errorOf(s.Page(ctx, "", 9)) }},
	{"Usage", nil, func(ctx context.Context, s *Store) error { return errorOf(s.Usage(ctx, "b1")) }},
	{"IsRemoved", nil, func(ctx context.Context, s *Store) error { return errorOf(s.IsRemoved(ctx, "x")) }},
	{"Reading", stateBucket, func(ctx context.Context, s *Store) error { return errorOf(s.Reading(ctx)) }},
	{"SetReading", stateBucket, func(ctx context.Context, s *Store) error {
		return s.SetReading(ctx, file.Reading{Position: 9})
	}},
	{"PassHour", stateBucket, func(ctx context.Context, s *Store) error { return s.PassHour(ctx, 0) }},
	{"Await", nil, func(ctx context.Context, s *Store) error { return s.Await(ctx, file.Naming{File: "f", Asset: "a"}) }},
	{"Settle", nil, func(ctx context.Context, s *Store) error { return s.Settle(ctx, file.Naming{File: "f", Asset: "a"}) }},
	{"Awaiting", nil, func(ctx context.Context, s *Store) error { return errorOf(s.Awaiting(ctx, file.Naming{}, 9)) }},
}

// TestAFailureIsNoAnswer makes each call with a context that has ended, on a store with damaged values, and on a
// closed store. Each call must return an error, because an empty answer looks like a registry without files.
func TestAFailureIsNoAnswer(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range calls {
		s, _ := twoFiles(t)
		expect.Err(t, c.do(gone, s), context.Canceled, "%s for a caller who has left", c.name)
		if c.damages != nil {
			change(t, s, c.damages, func(value []byte) []byte { return value[:len(value)/2] })
			expect.Err(t, c.do(t.Context(), s), boltfile.ErrDamaged, "%s of damaged %s", c.name, c.damages)
		}
		expect.OK(t, s.Close())
		expect.Fails(t, c.do(t.Context(), s), "%s of a closed store", c.name)
	}
}

// change changes each value of a bucket.
func change(t *testing.T, s *Store, bucket []byte, to func(value []byte) []byte) {
	t.Helper()
	expect.OK(t, s.file.Update(func(tx *bbolt.Tx) (err error) {
		values := map[string][]byte{}
		_ = tx.Bucket(bucket).ForEach(func(key, value []byte) error {
			values[string(key)] = to(bytes.Clone(value))
			return nil
		})
		for key, value := range values {
			err = errors.Join(err, tx.Bucket(bucket).Put([]byte(key), value))
		}
		return err
	}))
}

// withSum returns the value of a file that has the given JSON.
func withSum(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))), text...)
}

// TestADamagedFileIsFound damages the values of files in each way. No read may return the file, and Check must
// report it.
func TestADamagedFileIsFound(t *testing.T) {
	for name, damage := range map[string]func(value []byte) []byte{
		"cut within its sum": func(value []byte) []byte { return value[:crc32.Size-1] },
		"its sum alone":      func([]byte) []byte { return withSum("") },
		"another broker": func(value []byte) []byte {
			return bytes.Replace(value, []byte(`"b1"`), []byte(`"b2"`), 1)
		},
		"no JSON": func([]byte) []byte { return withSum("{") },
		"another type": func([]byte) []byte {
			return withSum(`{"ID":"` + of(1, "", 0).ID + `","Size":"x"}`)
		},
		"another file": func([]byte) []byte { return withSum(`{"ID":"` + of(3, "", 0).ID + `"}`) },
	} {
		s, path := twoFiles(t)
		change(t, s, filesBucket, damage)
		if f, err := s.Get(t.Context(), of(1, "", 0).ID); !errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("%s: got %+v and %v, want %v", name, f, err, boltfile.ErrDamaged)
		}
		expect.OK(t, s.Close())
		faults := Check(path, nil, func(file.File) error { return nil })
		if len(faults) != 2 || !errors.Is(faults[0], boltfile.ErrDamaged) || !errors.Is(faults[1], boltfile.ErrDamaged) {
			t.Errorf("%s: got the faults %v, want two damaged files", name, faults)
		}
	}
}

// TestCheck checks whole and damaged stores. It must report files that the caller does not accept, and brokers
// whose counts do not match their files.
func TestCheck(t *testing.T) {
	refused := errors.New("its bytes are missing")
	for _, c := range []struct {
		name   string
		change func(t *testing.T, s *Store)
		refuse file.State
		want   []string // a part of each fault
	}{
		{"a whole store", func(*testing.T, *Store) {}, "", nil},
		{"a removed file counts nothing", func(t *testing.T, s *Store) {
			f := of(4, file.Removed, 5)
			f.SHA256 = "x"
			expect.OK(t, errors.Join(s.Create(t.Context(), f), s.Create(t.Context(), of(5, file.Removed, 0))))
		}, "", nil},
		{"a file is refused", func(*testing.T, *Store) {}, file.Stored, []string{refused.Error()}},
		{"a count is another one", func(t *testing.T, s *Store) {
			change(t, s, usageBucket, func(value []byte) []byte { value[15]++; return value })
		}, "", []string{"b1 has 1 waiting files and 7 bytes, and 1 and 8 are counted"}},
		{"a count has another length", func(t *testing.T, s *Store) {
			change(t, s, usageBucket, func(value []byte) []byte { return append(value, 0) })
		}, "", []string{"b1 has 1 waiting files and 7 bytes, and 0 and 0 are counted"}},
	} {
		s, path := twoFiles(t)
		c.change(t, s)
		expect.OK(t, s.Close())
		seen := 0
		faults := Check(path, nil, func(f file.File) error {
			if seen++; f.State == c.refuse {
				return refused
			}
			return nil
		})
		for i, want := range c.want {
			if len(faults) != len(c.want) || !strings.Contains(faults[i].Error(), want) {
				t.Errorf("%s: got %v, want %q", c.name, faults, c.want)
				break
			}
		}
		if len(c.want) == 0 && len(faults) > 0 || seen < 2 {
			t.Errorf("%s: got %v after %d files, want no fault", c.name, faults, seen)
		}
	}
}

// TestWhatCannotBeStoredIsAFault stores texts that are longer than a key of the store can be. Each call must fail, and
// must change nothing.
func TestWhatCannotBeStoredIsAFault(t *testing.T) {
	s, _ := twoFiles(t)
	long := strings.Repeat("0", bbolt.MaxKeySize+1)
	id, broker, sum := of(1, file.Registered, 0), of(1, file.Registered, 0), of(1, file.Removed, 0)
	id.ID, broker.Broker, sum.SHA256 = long, long, long
	for what, f := range map[string]file.File{"id": id, "broker": broker, "SHA-256": sum} {
		created, replaced := f, f
		replaced.Revision = 2
		if what != "id" {
			created.ID = of(3, "", 0).ID
			if err := s.Replace(t.Context(), replaced); err == nil || errors.Is(err, file.ErrStale) {
				t.Errorf("replace a file, with a long %s: got %v, want an error", what, err)
			}
		}
		expect.Fails(t, s.Create(t.Context(), created), "create a file, with a long %s", what)
	}
	expect.Fails(t, s.Await(t.Context(), file.Naming{File: "f", Asset: long}), "await a long asset")
	files, err := s.Page(t.Context(), "", 9)
	if err != nil || len(files) != 2 || files[0].Revision != 1 {
		t.Errorf("got %+v and %v, want the two files as they were", files, err)
	}
}

// TestManyFaultsAreEnough checks a store in which the caller refuses every file. The check must end at maxFaults.
func TestManyFaultsAreEnough(t *testing.T) {
	s, path := twoFiles(t)
	expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error {
		for n := range maxFaults {
			if err := put(tx, file.File{}, of(100+n, file.Stored, 1)); err != nil {
				return err
			}
		}
		return nil
	}))
	expect.OK(t, s.Close())
	if got := Check(path, nil, func(file.File) error { return errors.New("refused") }); len(got) != maxFaults {
		t.Errorf("got %d faults, want %d", len(got), maxFaults)
	}
}

// TestCopiesAreNoFiles opens a store of files as a store of copies, and the other way round. Both must fail: a
// mirror would remove the files of a registry.
func TestCopiesAreNoFiles(t *testing.T) {
	s, path := twoFiles(t)
	copies := filepath.Join(t.TempDir(), "copies.db")
	c, err := OpenCopies(copies)
	expect.OK(t, errors.Join(err, s.Close()))
	expect.OK(t, errors.Join(c.Create(t.Context(), of(1, file.Stored, 7)), c.Close()))
	expect.FailsOf(t, "files as copies")(OpenCopies(path))
	expect.FailsOf(t, "copies as files")(Open(copies, nil, nil))
	c, err = OpenCopies(copies)
	expect.OK(t, err)
	if f, err := c.Get(t.Context(), of(1, "", 0).ID); err != nil || f.Size != 7 {
		t.Errorf("copies: got %+v and %v, want the copy", f, err)
	}
	expect.Try(t, c.Close())
}

// TestASnapshotIsWholeOrAFailure takes two snapshots. The first one must have the files. The second one has nowhere
// to go, so it must fail.
func TestASnapshotIsWholeOrAFailure(t *testing.T) {
	s, _ := twoFiles(t)
	path := filepath.Join(t.TempDir(), "snapshot.db")
	to := expect.Get(os.Create(path))(t)
	expect.OK(t, errors.Join(s.Snapshot(func(int64) (io.Writer, error) { return to, nil }), to.Close()))
	snapshot := expect.Get(Open(path, nil, nil))(t)
	defer snapshot.Close()
	if files, err := snapshot.Page(t.Context(), "", 9); err != nil || len(files) != 2 {
		t.Errorf("got %+v and %v, want two files", files, err)
	}
	full := errors.New("there is no room")
	expect.Err(t, s.Snapshot(func(int64) (io.Writer, error) { return nil, full }), full, "")
}
