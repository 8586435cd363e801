package replica

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry.example/client"
)

// heal removes the entries that are later than any change can be, which an earlier version
// has accepted. No state of their assets could replace them (K3). If there are any, or the
// position is so late, the copy is loaded anew over what it has.
func (r *Replica) heal() error {
	latest, removed := Latest(), 0
	upto, err := r.state.Upto()
	if err != nil {
		return err
	}
	err = r.file.View(func(tx *bbolt.Tx) error {
		b := bucketsOf(tx)
		for _, feed := range []*bbolt.Bucket{b.real, b.test} {
			if last, _ := feed.Cursor().Last(); bytes.Compare(last, positionKey(latest)) > 0 {
				removed++
			}
		}
		return nil
	})
	if err != nil || removed == 0 && upto <= latest {
		return err
	}
	state := State{Origin: r.state.Origin, Position: client.Position{ServerID: r.state.Position.ServerID}, Loading: true}
	var sound error
	err = r.file.Update(func(tx *bbolt.Tx) error {
		sound = errors.Join(bucketsOf(tx).cut(latest), Change{State: state}.put(tx))
		return sound
	})
	if sound != nil {
		return sound
	}
	if err != nil {
		return notStored(err)
	}
	r.state = state
	return nil
}

// cut removes all entries after a position, and their assets.
func (b buckets) cut(after int64) error {
	for _, feed := range []*bbolt.Bucket{b.real, b.test} {
		cursor := feed.Cursor()
		for at, id := cursor.Seek(positionKey(after + 1)); at != nil; at, id = cursor.Seek(positionKey(after + 1)) {
			if err := errors.Join(b.assets.Delete(id), feed.Delete(at)); err != nil {
				return fmt.Errorf("remove asset %x: %w", id, err)
			}
		}
	}
	return nil
}
