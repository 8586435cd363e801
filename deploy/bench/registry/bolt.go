package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"asset-registry/deploy/bench/load"
)

// rawBatches measures how fast the embedded store can be at most. It uses bbolt alone to write the bytes that the
// registry would get in a request, in durable batches, under random keys in one bucket.
func rawBatches(ctx context.Context, dir string, clients int, during time.Duration) (load.Result, error) {
	path := filepath.Join(dir, "raw.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return load.Result{}, fmt.Errorf("open bbolt: %w", err)
	}
	defer os.Remove(path)
	defer db.Close()
	db.MaxBatchDelay = time.Millisecond
	bucket := []byte("raw")
	if err := db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	}); err != nil {
		return load.Result{}, fmt.Errorf("prepare bbolt: %w", err)
	}
	write := db.Batch
	if clients == 1 { // a batch would wait for other clients, but there is only one
		write = db.Update
	}
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var written atomic.Int64
	start := time.Now()
	var g errgroup.Group
	for range clients {
		g.Go(func() error {
			for ctx.Err() == nil {
				key := make([]byte, 16)
				rand.Read(key) // rand.Read never returns an error
				if err := write(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, assetBody) }); err != nil {
					return fmt.Errorf("write to bbolt: %w", err)
				}
				written.Add(1)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return load.Result{}, err
	}
	return load.Result{PerSecond: float64(written.Load()) / time.Since(start).Seconds()}, nil
}
