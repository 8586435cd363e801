package replica

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry.example/client"
)

// heal removes entries whose position is too far in the future. An earlier version accepted such entries, and no
// later state of their assets could replace them (K3). If heal finds such an entry, or if the position of the copy
// itself is too far in the future, it marks the copy, and CatchUp then loads the newest snapshot again over
// the existing data.
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

// cut removes all entries of the feeds after a position, and the assets of these entries.
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
