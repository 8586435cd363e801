package boltstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/boltfile"
)

const (
	idSize       = registry.IDSize
	positionSize = 8 // bytes of a position, and of every other number
	dayForm      = time.DateOnly
)

// maxFaults is the largest number of faults in a store's contents that Check reports.
const maxFaults = 20

// Check counts the assets of a store and reports its faults: the faults that boltfile.Check finds, and up to
// maxFaults contradictions between buckets. No process may have the file open. Check does not change the file.
// The function `facts` returns the number of an asset, such as "UA-AR-DGF-2026-11-20-000001", and its owner.
func Check(
	path string, secrets [][]byte, facts func(registry.Record) (number, owner string, err error),
) (assets int, faults []error) {
	faults = boltfile.Check(path, fileOptions(secrets, nil), func(tx *bbolt.Tx) []error {
		c := &checker{tx: tx, facts: facts}
		c.check()
		assets = c.assets
		return c.faults
	})
	return assets, faults
}

// checker compares the buckets of a store.
type checker struct {
	tx    *bbolt.Tx
	facts func(registry.Record) (number, owner string, err error)

	assets     int   // all assets
	real, test int   // listed assets in the feed of real assets, and of test assets
	enlisted   int   // assets in the lists of brokers
	changes    int   // changes in the record
	owned      int   // webhooks that belong to brokers
	indexed    bool  // the file has the index of brokers
	last       int64 // newest position of an asset
	faults     []error
}

// errEnough ends a check after maxFaults faults.
var errEnough = errors.New("too many faults")

// fault adds a fault to the list. Once maxFaults are in the list, it returns errEnough.
func (c *checker) fault(format string, args ...any) error {
	c.faults = append(c.faults, fmt.Errorf("%w: %s", boltfile.ErrDamaged, fmt.Sprintf(format, args...)))
	if len(c.faults) == maxFaults {
		return errEnough
	}
	return nil
}

func (c *checker) check() {
	state := c.tx.Bucket(stateBucket)
	c.indexed = c.tx.Bucket(brokerBucket) != nil && bytes.Equal(state.Get(lastKey), state.Get(indexedKey))
	steps := []func() error{
		func() error { return c.tx.Bucket(assetBucket).ForEach(c.asset) },
		func() error { return c.entries(realBucket, c.real, "listed assets") },
		func() error { return c.entries(testBucket, c.test, "listed assets") },
		c.brokers,
		c.references,
		func() error { return c.tx.Bucket(changeBucket).ForEach(c.change) },
		func() error { return c.entries(historyBucket, c.changes, "changes") },
		func() error { return c.tx.Bucket(webhookBucket).ForEach(c.webhook) },
		func() error { return c.entries(ownedBucket, c.owned, "webhooks of brokers") },
		c.log,
	}
	for _, step := range steps {
		if step() != nil {
			return
		}
	}
	value := c.tx.Bucket(stateBucket).Get(lastKey)
	if c.last > 0 && (len(value) != positionSize || positionOf(value) < c.last) {
		_ = c.fault("the newest position is lower than an asset's position %d", c.last) // ignores errEnough
	}
}

// The method `asset` checks that an asset can be read and is in its feed, and that no later asset gets its number.
func (c *checker) asset(key, value []byte) error {
	id := hex.EncodeToString(key)
	c.assets++
	r, err := decode(id, value, registry.AnySize)
	if err != nil {
		return c.fault("asset %s cannot be read", id)
	}
	if err := c.isClaimed(r); err != nil {
		return err
	}
	if r.Removed {
		c.last = max(c.last, r.Position)
		return c.isRecorded(key, r)
	}
	number, owner, err := c.facts(r)
	if err != nil {
		return c.fault("asset %s: %v", id, err)
	}
	c.last = max(c.last, r.Position)
	if err := c.isRecorded(key, r); err != nil {
		return err
	}
	if err := c.isEnlisted(key, owner, r); err != nil {
		return err
	}
	if r.Listed {
		feed := realBucket
		if r.Test {
			feed = testBucket
			c.test++
		} else {
			c.real++
		}
		if !bytes.Equal(c.tx.Bucket(feed).Get(positionKey(r.Position)), key) {
			return c.fault("asset %s is not in the feed at its position", id)
		}
	}
	return c.isCounted(id, number)
}

// isClaimed checks that the reference of an asset leads to this asset. An asset may have no reference.
func (c *checker) isClaimed(r registry.Record) error {
	broker, reference, err := r.Reference()
	switch {
	case err != nil:
		return c.fault("%v", err)
	case reference == "":
		return nil
	}
	references := c.tx.Bucket(referenceBucket)
	if references == nil || string(references.Get([]byte(registry.ReferenceKey(broker, reference)))) != r.ID {
		return c.fault("the reference of asset %s does not stand for it", r.ID)
	}
	return nil
}

// references checks that each reference stands for an id. If the asset with this id exists and has a reference, the
// two references must be the same. An earlier version of the program may have left an asset without its reference.
func (c *checker) references() error {
	references := c.tx.Bucket(referenceBucket)
	if references == nil { // the file of an earlier version, which had no references
		return nil
	}
	return references.ForEach(func(key, value []byte) error {
		id, isID := registry.ParseID(string(value))
		if !isID {
			return c.fault("the reference %q stands for no id", key)
		}
		stored := c.tx.Bucket(assetBucket).Get(id)
		if stored == nil {
			return nil // the creation was interrupted before the asset was stored
		}
		r, err := decode(string(value), stored, registry.AnySize)
		if err != nil {
			return nil // the check of the assets has reported this fault
		}
		broker, reference, err := r.Reference()
		if err == nil && reference != "" && registry.ReferenceKey(broker, reference) != string(key) {
			return c.fault("the reference %q stands for asset %s, which has another one", key, r.ID)
		}
		return nil
	})
}

// isRecorded checks that the newest change of an asset is in the record.
func (c *checker) isRecorded(key []byte, r registry.Record) error {
	change := c.tx.Bucket(changeBucket).Get(positionKey(r.Position))
	if len(change) >= changeHeader && bytes.Equal(change[1:1+idSize], key) {
		return nil
	}
	return c.fault("the newest change of asset %s, at %d, is not in the record", r.ID, r.Position)
}

// isEnlisted checks that an asset is in the list of its owner, if the file has the lists. A file from an earlier
// version of the program gets the lists when it is opened.
func (c *checker) isEnlisted(key []byte, owner string, r registry.Record) error {
	if !c.indexed || owner == "" {
		return nil
	}
	place := c.tx.Bucket(brokerBucket).Get(enlistedAt(owner, r.Position))
	if !bytes.Equal(place, placeOf(key, r)) {
		return c.fault("asset %s is not in the list of its owner at its position", r.ID)
	}
	c.enlisted++
	return nil
}

// brokers checks that the lists of brokers contain nothing but the assets that were checked.
func (c *checker) brokers() error {
	if !c.indexed {
		return nil
	}
	return c.entries(brokerBucket, c.enlisted, "assets of brokers")
}

// isCounted checks the number of an asset. For each day, the store keeps the newest number. The newest number of the
// asset's day must not be lower than the number of the asset.
func (c *checker) isCounted(id, number string) error {
	end := strings.LastIndexByte(number, '-')
	if end < len(dayForm) {
		return c.fault("asset %s has the malformed number %q", id, number)
	}
	n, err := strconv.Atoi(number[end+1:])
	day := number[end-len(dayForm) : end]
	stored := c.tx.Bucket(numberBucket).Get([]byte(day))
	if err != nil || len(stored) != positionSize || positionOf(stored) < int64(n) {
		return c.fault("asset %s: the newest number of its day is lower than its own, %s", id, number)
	}
	return nil
}

// webhook checks that a webhook can be read, and that the list of its broker has it.
func (c *checker) webhook(key, value []byte) error {
	e, err := decodeEndpoint(key, value)
	if err != nil {
		return c.fault("webhook %q cannot be read", key)
	}
	if e.ByAdmin {
		return nil
	}
	c.owned++
	if at, _ := c.tx.Bucket(ownedBucket).Cursor().Seek(owned(e.Broker, e.ID)); !bytes.Equal(at, owned(e.Broker, e.ID)) {
		return c.fault("webhook %s is missing from the list of its broker", e.ID)
	}
	return nil
}

// entries checks that a bucket has exactly as many entries as the other checks have found.
func (c *checker) entries(name []byte, found int, of string) error {
	if entries := c.tx.Bucket(name).Stats().KeyN; entries != found {
		return c.fault("bucket %s has %d entries for %d %s", name, entries, found, of)
	}
	return nil
}

// The method `change` checks that a change can be read and is in the history of its asset. It also checks that the
// change has no higher revision and no higher position than the asset.
func (c *checker) change(key, value []byte) error {
	c.changes++
	r, err := decodeChange(key, value, true)
	if err != nil {
		return c.fault("the change at %x cannot be read", key)
	}
	id, _ := registry.ParseID(r.ID)
	if at, _ := c.tx.Bucket(historyBucket).Cursor().Seek(historyKey(id, r.Position)); !bytes.Equal(
		at, historyKey(id, r.Position)) {
		return c.fault("the change at %d is not in the history of asset %s", r.Position, r.ID)
	}
	h, err := decodeHeader(c.tx.Bucket(assetBucket).Get(id))
	if err != nil || r.Revision > h.revision || r.Position > h.position {
		return c.fault("the record has a change of asset %s at %d that the asset does not have", r.ID, r.Position)
	}
	return nil
}
