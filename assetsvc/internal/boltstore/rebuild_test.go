package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// logged is a store whose public log has more than two full bundles. Its checkpoint covers only a part of them,
// and the newest changes of the record are not in the log yet.
type logged struct {
	file   []byte
	head   publiclog.Head
	leaves [][]byte // leaves of the log, up to the position of the head
	key    translog.Key
}

func newLogged(t *testing.T) logged {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assets.db")
	s := expect.Get(Open(path, Options{Now: time.Now}))(t)
	var wg sync.WaitGroup
	for i := range 640 {
		change := `{"leaf":{"kind":"withdraw"}}`
		if i%8 == 0 { // a change that is not public
			change = `{}`
		}
		wg.Go(func() {
			r := registry.Record{ID: storetest.NewID(), Removed: true, Change: []byte(change)}
			if _, err := s.Create(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	page, err := s.Changes(t.Context(), registry.ChangesQuery{Limit: 630, Bytes: registry.AnySize})
	if err != nil || len(page.Changes) != 630 {
		t.Fatalf("got %d changes, %v; want 630", len(page.Changes), err)
	}
	var l logged
	for _, change := range page.Changes {
		if leaf, _, public, err := change.Leaf(); err != nil {
			t.Fatal(err)
		} else if public {
			l.leaves = append(l.leaves, leaf.Encode())
		}
	}
	l.key, err = translog.GenerateKey(translog.ForLog, "registry.example/log")
	expect.OK(t, err)
	tree, full, err := (translog.Tree{}).Append(l.leaves)
	if err != nil || len(full) != 4 { // two tiles of hashes and two bundles of entries
		t.Fatalf("got %d full parts, %v; want 4", len(full), err)
	}
	l.head = publiclog.Head{Position: page.Upto, Tree: tree, Checkpoint: l.checkpoint(t, 300)}
	if stored, err := s.ExtendLog(t.Context(), l.head, full); err != nil || !stored {
		t.Fatalf("got %t, %v for the log, want it stored", stored, err)
	}
	l.head.Version++
	expect.OK(t, s.Close())
	l.file, err = os.ReadFile(path)
	expect.OK(t, err)
	return l
}

// checkpoint signs a log of the given size, which is made of the first leaves.
func (l logged) checkpoint(t *testing.T, size int) []byte {
	t.Helper()
	return l.sign(t, int64(size), l.tree(t, l.leaves[:size]))
}

func (l logged) sign(t *testing.T, size int64, tree translog.Tree) []byte {
	t.Helper()
	c := translog.Checkpoint{Origin: l.key.Public().Name(), Size: size, Root: tree.Root()}
	return expect.Get(translog.Sign(c, l.key))(t)
}

func (logged) tree(t *testing.T, leaves [][]byte) translog.Tree {
	t.Helper()
	tree, _, err := (translog.Tree{}).Append(leaves)
	expect.OK(t, err)
	return tree
}

// change changes the file of a closed store.
func change(t *testing.T, path string, with func(*bbolt.Tx) error) {
	t.Helper()
	s := expect.Get(Open(path, Options{Now: time.Now}))(t)
	expect.OK(t, errors.Join(s.file.Update(with), s.Close()))
}

// logIn returns all data of the public log in a file, except the number that counts the changes of the
// head.
func logIn(t *testing.T, path string) map[string]string {
	t.Helper()
	log := map[string]string{}
	change(t, path, func(tx *bbolt.Tx) error {
		head := tx.Bucket(stateBucket).Get(headKey)
		log["head"] = string(head[min(8, len(head)):])
		return tx.Bucket(tileBucket).ForEach(func(key, value []byte) error {
			log[fmt.Sprintf("%x", key)] = string(value)
			return nil
		})
	})
	return log
}

// TestADamagedLogIsFoundAndRepaired damages the public log, or the record from which it is made. Check must name
// the damage. RepairLog must restore the log, or change nothing.
func TestADamagedLogIsFoundAndRepaired(t *testing.T) {
	l := newLogged(t)
	hashes := translog.Tile{Width: translog.TileWidth}
	entries := translog.Tile{Level: translog.Entries, Width: translog.TileWidth}
	second := entries
	second.Index = 1
	drop := func(tile translog.Tile) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket(tileBucket).Delete(tileKey(tile)) }
	}
	head := func(change func(*publiclog.Head)) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			changed := l.head
			change(&changed)
			changed.Version-- // encodeHead adds one
			value, err := encodeHead(changed)
			return errors.Join(err, tx.Bucket(stateBucket).Put(headKey, value))
		}
	}
	signed := func(checkpoint []byte) func(*bbolt.Tx) error {
		return head(func(h *publiclog.Head) { h.Checkpoint = checkpoint })
	}
	other := l.tree(t, append(l.leaves[:len(l.leaves)-1:len(l.leaves)-1], []byte("another leaf")))
	first := func(change []byte) func(*bbolt.Tx) error { // rewrites the first public change
		return func(tx *bbolt.Tx) error {
			cursor := tx.Bucket(changeBucket).Cursor()
			for key, value := cursor.First(); ; key, value = cursor.Next() {
				r, err := decodeChange(key, value, false)
				if err != nil {
					return err
				}
				if len(r.Change) > len(`{}`) {
					r.Change = change
					id, _ := registry.ParseID(r.ID)
					return tx.Bucket(changeBucket).Put(bytes.Clone(key), encodeChange(id, r))
				}
			}
		}
	}
	const (
		foreign = "the record does not make the signed public log"
		useless = "the public log cannot be compared with the record"
	)
	for _, c := range []struct {
		name     string
		damage   func(*bbolt.Tx) error
		want     string // a part of the text of the faults; "": no fault
		repaired int
		err      string // a part of the text of RepairLog's error; "": no error
	}{
		{"nothing is damaged", func(*bbolt.Tx) error { return nil }, "", 0, ""},
		{"a bit of a hash", func(tx *bbolt.Tx) error {
			data := bytes.Clone(tx.Bucket(tileBucket).Get(tileKey(hashes)))
			data[40] ^= 1
			return tx.Bucket(tileBucket).Put(tileKey(hashes), data)
		}, hashes.Path() + " of the public log", 1, ""},
		{"no first entries", drop(entries), entries.Path() + " of the public log", 1, ""},
		{"no second entries", drop(second), second.Path() + " of the public log", 1, ""},
		{"two parts", func(tx *bbolt.Tx) error { return errors.Join(drop(hashes)(tx), drop(second)(tx)) },
			second.Path() + " of the public log", 2, ""},
		{"another newest leaf", head(func(h *publiclog.Head) { h.Tree = other }), "the newest leaves", 1, ""},
		{"fewer leaves than changes", head(func(h *publiclog.Head) { h.Tree = l.tree(t, l.leaves[:540]) }),
			"the newest leaves", 1, ""},
		{"no checkpoint", signed(nil), "", 0, ""},
		{"a checkpoint of the empty log", signed(l.checkpoint(t, 0)), "", 0, ""},
		{"a checkpoint of a full part", signed(l.checkpoint(t, 512)), "", 0, ""},
		{"a checkpoint of all leaves", signed(l.checkpoint(t, len(l.leaves))), "", 0, ""},
		{"a checkpoint of other leaves", signed(l.sign(t, int64(len(l.leaves)), other)), foreign, 0, "restore a backup"},
		{"a checkpoint of another size", signed(l.sign(t, 301, l.tree(t, l.leaves[:300]))), foreign, 0, "restore a backup"},
		{"a checkpoint of more leaves", signed(l.sign(t, 5000, other)), foreign, 0, "restore a backup"},
		{"a log of another record", func(tx *bbolt.Tx) error {
			return errors.Join(first([]byte(`{}`))(tx), drop(entries)(tx))
		}, foreign, 0, "restore a backup"},
		{"a change that cannot be read", func(tx *bbolt.Tx) error {
			key, value := tx.Bucket(changeBucket).Cursor().First()
			return tx.Bucket(changeBucket).Put(key, value[:len(value)/2])
		}, useless + ": change at", 0, "damaged"},
		{"a leaf that cannot be read", first([]byte(`{"leaf":1}`)), useless + ": leaf of the", 0, "leaf of the change at"},
		{"a checkpoint that cannot be read", signed([]byte("half")), useless, 0, "malformed checkpoint"},
		{"a head that cannot be read", func(tx *bbolt.Tx) error {
			return tx.Bucket(stateBucket).Put(headKey, []byte("half"))
		}, "the head of the public log cannot be read", 0, "damaged"},
		{"a part too many", func(tx *bbolt.Tx) error {
			return tx.Bucket(tileBucket).Put(binary.BigEndian.AppendUint64([]byte{0}, 7), []byte("x"))
		}, "bucket tiles has 5 entries for 4 parts", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "assets.db")
			expect.OK(t, os.WriteFile(path, l.file, 0o600))
			undamaged := logIn(t, path)
			change(t, path, c.damage)
			damaged := logIn(t, path)
			_, faults := Check(path, nil, nil)
			if got := fmt.Sprint(faults); (c.want == "") != (len(faults) == 0) || !strings.Contains(got, c.want) {
				t.Errorf("got the faults %s, want %q", got, c.want)
			}
			repaired, err := RepairLog(path, nil)
			if repaired != c.repaired || (c.err == "") != (err == nil) || !strings.Contains(fmt.Sprint(err), c.err) {
				t.Errorf("got %d repaired parts, %v; want %d and the error %q", repaired, err, c.repaired, c.err)
			}
			want := damaged
			if repaired > 0 {
				want = undamaged
				if _, faults := Check(path, nil, nil); len(faults) != 0 {
					t.Errorf("got the faults %v after the repair, want none", faults)
				}
			}
			if !maps.Equal(logIn(t, path), want) {
				t.Errorf("got another log than before, want the same after %d repairs", repaired)
			}
		})
	}
}

// TestALogIsComparedWithARecordOnly checks a copy, which has the log but no record. Check must not report that
// as a fault.
func TestALogIsComparedWithARecordOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	change(t, path, func(tx *bbolt.Tx) error {
		tree, _, err := (translog.Tree{}).Append([][]byte{[]byte("a leaf")})
		if err != nil {
			return err
		}
		value, err := encodeHead(publiclog.Head{Position: 1, Tree: tree})
		return errors.Join(err, tx.Bucket(stateBucket).Put(headKey, value))
	})
	if _, faults := Check(path, nil, nil); len(faults) != 0 {
		t.Errorf("got the faults %v, want none", faults)
	}
}

// TestTheLogEndsTheFaultsToo damages so many webhooks that one more fault ends the check. It also damages the log
// and the newest position. The last fault must be about the log.
func TestTheLogEndsTheFaultsToo(t *testing.T) {
	l := newLogged(t)
	state := func(key, value []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket(stateBucket).Put(key, value) }
	}
	encoded := func(h publiclog.Head) []byte {
		return expect.Get(encodeHead(h))(t)
	}
	foreign, unread, shorter := l.head, l.head, l.head
	foreign.Checkpoint, unread.Checkpoint = l.sign(t, 301, l.tree(t, l.leaves[:300])), []byte("half")
	shorter.Tree = l.tree(t, l.leaves[:540])
	for _, c := range []struct {
		name   string
		damage func(*bbolt.Tx) error
	}{
		{"all parts", func(tx *bbolt.Tx) error { return halve(tx.Bucket(tileBucket)) }},
		{"a head that cannot be read", state(headKey, []byte("half"))},
		{"a checkpoint that cannot be read", state(headKey, encoded(unread))},
		{"a checkpoint of other leaves", state(headKey, encoded(foreign))},
		{"fewer leaves than changes", state(headKey, encoded(shorter))},
		{"a part too many", func(tx *bbolt.Tx) error { return tx.Bucket(tileBucket).Put([]byte("x"), []byte("x")) }},
	} {
		path := filepath.Join(t.TempDir(), "assets.db")
		expect.OK(t, os.WriteFile(path, l.file, 0o600))
		change(t, path, func(tx *bbolt.Tx) (err error) {
			for i := range maxFaults - 1 {
				err = errors.Join(err, tx.Bucket(webhookBucket).Put(fmt.Append(nil, "w", i), []byte("half")))
			}
			return errors.Join(err, c.damage(tx), state(lastKey, positionKey(1))(tx))
		})
		_, faults := Check(path, nil, nil)
		if len(faults) != maxFaults || !strings.Contains(faults[maxFaults-1].Error(), "public log") {
			t.Errorf("%s: got %d faults, want %d with one of the log: %v", c.name, len(faults), maxFaults, faults)
		}
	}
}

// TestAFileInUseIsNotRepaired tries to repair a file while the store is open. RepairLog must return an error.
func TestAFileInUseIsNotRepaired(t *testing.T) {
	_, path, _, _ := twoAssets(t)
	expect.ErrOf(t, boltfile.ErrInUse, "")(RepairLog(path, nil))
}
