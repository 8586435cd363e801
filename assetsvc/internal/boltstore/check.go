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
	idSize       = 16 // bytes of an asset's key
	positionSize = 8  // bytes of a position, and of other numbers
	dayForm      = time.DateOnly
)

// maxFaults is how many faults of a store's contents Check tells.
const maxFaults = 20

// Check returns how many assets a store has that nobody has open, and all that
// is wrong with it. It is told how to find an asset's number ("UA-AR-DGF-2026-11-20-000001").
func Check(path string, secrets [][]byte, number func(registry.Record) (string, error)) (assets int, faults []error) {
	faults = boltfile.Check(path, fileOptions(secrets, nil), func(tx *bbolt.Tx) []error {
		c := &checker{tx: tx, number: number}
		c.check()
		assets = c.assets
		return c.faults
	})
	return assets, faults
}

// checker compares the buckets of a store.
type checker struct {
	tx     *bbolt.Tx
	number func(registry.Record) (string, error)

	assets, real, test int   // assets; those of them that are listed
	last               int64 // newest position of an asset
	faults             []error
}

var errEnough = errors.New("enough was found")

func (c *checker) fault(format string, args ...any) error {
	c.faults = append(c.faults, fmt.Errorf("%w: %s", boltfile.ErrDamaged, fmt.Sprintf(format, args...)))
	if len(c.faults) == maxFaults {
		return errEnough
	}
	return nil
}

func (c *checker) check() {
	for _, step := range []func() error{
		func() error { return c.tx.Bucket(assetBucket).ForEach(c.asset) },
		func() error { return c.feed(realBucket, c.real) },
		func() error { return c.feed(testBucket, c.test) },
		func() error { return c.tx.Bucket(logBucket).ForEach(c.entry) },
	} {
		if step() != nil {
			return
		}
	}
	value := c.tx.Bucket(stateBucket).Get(lastKey)
	if c.last > 0 && (len(value) != positionSize || positionOf(value) < c.last) {
		_ = c.fault("the newest position is behind that of an asset, %d", c.last)
	}
}

func (c *checker) asset(key, value []byte) error {
	id := hex.EncodeToString(key)
	c.assets++
	r, err := decode(id, value, registry.AnySize)
	if err != nil {
		return c.fault("asset %s: it cannot be read", id)
	}
	number, err := c.number(r)
	if err != nil {
		return c.fault("asset %s: %v", id, err)
	}
	c.last = max(c.last, r.Position)
	if r.Listed {
		feed := realBucket
		if r.Test {
			feed = testBucket
			c.test++
		} else {
			c.real++
		}
		if !bytes.Equal(c.tx.Bucket(feed).Get(positionKey(r.Position)), key) {
			return c.fault("asset %s: it is not in the feed at its position", id)
		}
	}
	return c.isCounted(id, number)
}

// isCounted checks that a number will not be given out again.
func (c *checker) isCounted(id, number string) error {
	end := strings.LastIndexByte(number, '-')
	if end < len(dayForm) {
		return c.fault("asset %s: its number is %q", id, number)
	}
	n, err := strconv.Atoi(number[end+1:])
	day := number[end-len(dayForm) : end]
	stored := c.tx.Bucket(numberBucket).Get([]byte(day))
	if err != nil || len(stored) != positionSize || positionOf(stored) < int64(n) {
		return c.fault("asset %s: the numbers of its day are behind its own, %s", id, number)
	}
	return nil
}

// feed checks that a feed has no more entries than assets that are right in it.
func (c *checker) feed(name []byte, listed int) error {
	if entries := c.tx.Bucket(name).Stats().KeyN; entries != listed {
		return c.fault("%s has %d entries, and %d assets belong there", name, entries, listed)
	}
	return nil
}

func (c *checker) entry(key, value []byte) error {
	if len(key) != idSize+positionSize || len(value) < positionSize {
		return c.fault("an entry of the log is cut off")
	}
	asset := c.tx.Bucket(assetBucket).Get(key[:idSize])
	if h, err := decodeHeader(asset); err != nil || positionOf(key[idSize:]) > h.revision {
		return c.fault("the log has a change of asset %x that the asset has not", key[:idSize])
	}
	return nil
}
