package boltfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"asset-registry/shared/testing/expect"
)

const erasedValue = "a telephone number that must not stay"

// bloated makes a file with many values that were removed, and one that was replaced.
func bloated(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	f, err := Open(path, testOptions)
	expect.OK(t, err)
	for round := range 2 {
		expect.OK(t, f.Update(func(tx *bbolt.Tx) (err error) {
			big := tx.Bucket(bigBucket)
			for i := range 2000 {
				key := fmt.Appendf(nil, "key %06d", i)
				switch {
				case round == 0:
					err = errors.Join(err, big.Put(key, bytes.Repeat([]byte(erasedValue+"\n"), 1+i%30)))
				case i%10 == 0:
					err = errors.Join(err, big.Put(key, []byte("what stays")))
				default:
					err = errors.Join(err, big.Delete(key))
				}
			}
			return errors.Join(err, tx.Bucket(smallBucket).Put([]byte("empty"), nil), big.SetSequence(7))
		}))
	}
	expect.OK(t, f.Close())
	return path
}

// contents returns all keys and values of a file, and the sequences of its buckets.
func contents(t *testing.T, path string) map[string]string {
	t.Helper()
	all := map[string]string{}
	faults := Check(path, testOptions, func(tx *bbolt.Tx) []error {
		return []error{tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			all[string(name)] = fmt.Sprint(b.Sequence())
			return b.ForEach(func(k, v []byte) error {
				all[string(name)+"/"+string(k)] = string(v)
				return nil
			})
		})}
	})
	expect.OK(t, errors.Join(faults...))
	return all
}

// put stores a value of the given size under a key.
func put(f *File, key string, size int) error {
	return f.Batch(context.Background(), func(tx *bbolt.Tx) error {
		return tx.Bucket(bigBucket).Put([]byte(key), make([]byte, size))
	})
}

func holds(t *testing.T, path, text string) bool {
	t.Helper()
	bytesOf, err := os.ReadFile(path)
	expect.OK(t, err)
	return bytes.Contains(bytesOf, []byte(text))
}

// onlyFile checks that the directory contains only the file.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("got the folder's entries %v, %v; want the file alone", entries, err)
	}
}

func TestACompactedFileHasNoErasedBytes(t *testing.T) {
	path := bloated(t)
	expect.OK(t, os.Chmod(path, 0o640))
	if os.Geteuid() == 0 {
		expect.OK(t, os.Chown(path, 1234, 2345))
	}
	want := contents(t, path)
	was, err := os.Stat(path)
	expect.OK(t, err)
	expect.FatalIf(t, !holds(t, path, erasedValue), "before: got no erased value in the file, want one")
	before, after, err := Compact(path)
	expect.OK(t, err)
	is, err := os.Stat(path)
	expect.OK(t, err)
	if before != was.Size() || after != is.Size() || after > before/4 {
		t.Errorf("got %d bytes before and %d after, want %d and at most a quarter", before, after, was.Size())
	}
	expect.ErrorIf(t, holds(t, path, erasedValue), "after: got an erased value in the file, want none")
	expect.NoDiff(t, cmp.Diff(want, contents(t, path)), "contents")
	had, has := was.Sys().(*syscall.Stat_t), is.Sys().(*syscall.Stat_t)
	if is.Mode() != was.Mode() || has.Uid != had.Uid || has.Gid != had.Gid {
		t.Errorf("got mode %v and owner %d:%d, want %v and %d:%d", is.Mode(), has.Uid, has.Gid, was.Mode(), had.Uid, had.Gid)
	}
	onlyFile(t, path)
	mustOpen(t, path, testOptions.Format, bigBucket) // the file can be used as before
}

func TestACompactionThatFailsLeavesTheFile(t *testing.T) {
	for _, step := range []compactStep{opened, copied, synced} {
		path := bloated(t)
		want, err := os.ReadFile(path)
		expect.OK(t, err)
		failure := errors.New("a failure")
		_, _, err = compact(path, func(s compactStep) error {
			if s == step {
				return failure
			}
			return nil
		})
		expect.Err(t, err, failure, "%s", step)
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got another file or %v, want the same", step, err)
		}
		onlyFile(t, path)
	}
}

// TestACompactionThatIsKilledLeavesAFile compacts in a second process, which is killed at one of the steps.
// The file must keep its contents, and Open must accept it.
func TestACompactionThatIsKilledLeavesAFile(t *testing.T) {
	const asksStep, asksPath = "BOLTFILE_TEST_KILL_AT", "BOLTFILE_TEST_PATH"
	if step := os.Getenv(asksStep); step != "" {
		_, _, err := compact(os.Getenv(asksPath), func(s compactStep) error {
			if string(s) == step {
				return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("the process goes on"))
			}
			return nil
		})
		t.Fatalf("got %v, want the process killed", err)
	}
	for _, step := range []compactStep{opened, copied, synced, renamed} {
		path := bloated(t)
		want := contents(t, path)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), asksStep+"="+string(step), asksPath+"="+path)
		text, err := cmd.CombinedOutput()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("%s: got %v, want the process killed: %s", step, err, text)
		}
		expect.Equal(t, holds(t, path, erasedValue), step != renamed, "%s: the erased value in the file", step)
		expect.NoDiff(t, cmp.Diff(want, contents(t, path)), "%s: contents", step)
		f, err := Open(path, testOptions)
		expect.Must(t, err, "%s", step)
		expect.OK(t, f.Close())
		onlyFile(t, path)
		if _, _, err := Compact(path); err != nil || holds(t, path, erasedValue) {
			t.Errorf("%s: compact again: got %v, want no error and no erased value", step, err)
		}
	}
}

func TestCompactRefuses(t *testing.T) {
	used := bloated(t)
	f, err := Open(used, testOptions)
	expect.OK(t, err)
	defer f.Close()
	if _, _, err := Compact(used); !errors.Is(err, ErrInUse) {
		t.Errorf("a file in use: got %v, want %v", err, ErrInUse)
	}
	damaged := bloated(t)
	expect.OK(t, os.Truncate(damaged, 3*int64(os.Getpagesize())))
	if _, _, err := Compact(damaged); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged file: got %v, want %v", err, ErrDamaged)
	}
	onlyFile(t, used)
	onlyFile(t, damaged)
}

// TestNoWriteIsLostToACompaction opens, writes and closes a file again and again while it is compacted. No write
// may be lost, even if a writer waits for the lock of the file while the file is replaced.
func TestNoWriteIsLostToACompaction(t *testing.T) {
	path := bloated(t)
	var writers, compacting sync.WaitGroup
	done := make(chan struct{})
	compactions := 0
	compacting.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, _, err := Compact(path); err == nil {
				compactions++
			} else if !errors.Is(err, ErrInUse) {
				t.Error(err)
				return
			}
		}
	})
	const rounds = 12
	for w := range 3 {
		writers.Go(func() {
			for i := 0; i < rounds; {
				f, err := Open(path, testOptions)
				if errors.Is(err, ErrInUse) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mine, err1 := f.own.Stat()
				there, err2 := os.Stat(path)
				if err := errors.Join(err1, err2); err != nil || !os.SameFile(mine, there) {
					t.Errorf("got a file that was replaced open, or %v, want the new one", err)
				}
				err = put(f, fmt.Sprint("write ", w, " ", i), 10)
				time.Sleep(time.Millisecond)
				expect.Try(t, errors.Join(err, f.Close()))
				i++
			}
		})
	}
	writers.Wait()
	close(done)
	compacting.Wait()
	t.Logf("%d compactions", compactions)
	all := contents(t, path)
	for w := range 3 {
		for i := range rounds {
			if _, ok := all[fmt.Sprint("big/write ", w, " ", i)]; !ok {
				t.Errorf("write %d of process %d: got nothing in the file, want it", i, w)
			}
		}
	}
}
