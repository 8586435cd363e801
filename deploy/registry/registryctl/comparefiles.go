package registryctl

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/filelink"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// filesReport is what the verification of files found.
type filesReport struct {
	Matched int   `json:"matched"` // files whose bytes their documents describe
	Bytes   int64 `json:"bytes"`   // of these
	Removed int   `json:"removed"` // files that were taken down
	Foreign int   `json:"foreign"` // documents whose files the registry does not keep, or did not have at the checkpoint
}

// fileComparison compares files with what documents say about them, each file once. It is safe for
// concurrent use.
type fileComparison struct {
	registry *client.Client

	mu     sync.Mutex
	known  map[string]filelink.Document // id -> what the first document says
	report filesReport
}

// compare compares the files of an asset's documents. The asset comes from its newest leaf.
func (c *fileComparison) compare(ctx context.Context, id string, asset []byte) error {
	documents, err := filelink.Documents(asset)
	if err != nil {
		return fmt.Errorf("asset %s: %w", id, err)
	}
	for _, d := range documents {
		file, isKept := d.File()
		if !isKept {
			c.mu.Lock()
			c.report.Foreign++
			c.mu.Unlock()
			continue
		}
		if err := c.compareFile(ctx, file, d); err != nil {
			return fmt.Errorf("asset %s, file %s: %w", id, file, err)
		}
	}
	return nil
}

// compareFile fetches a file that was not fetched before.
func (c *fileComparison) compareFile(ctx context.Context, id string, d filelink.Document) error {
	c.mu.Lock()
	before, isKnown := c.known[id]
	if !isKnown {
		c.known[id] = d
	}
	c.mu.Unlock()
	if isKnown {
		if before.SHA256 != d.SHA256 || before.Size != d.Size {
			return fmt.Errorf("%w: another document of it has another hash", translog.ErrTampered)
		}
		return nil
	}
	got, err := c.fetch(ctx, id)
	isRemoved := client.StatusOf(err) == http.StatusGone
	if err != nil && !isRemoved {
		return err
	}
	if !isRemoved && (got.SHA256 != d.SHA256 || got.Size != d.Size || len(d.Hash) == len(got.Hash) && got.Hash != d.Hash) {
		return fmt.Errorf("%w: it has %d bytes with the SHA-256 %s, and its document says %d and %s",
			translog.ErrTampered, got.Size, got.SHA256, d.Size, d.SHA256)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if isRemoved {
		c.report.Removed++
		return nil
	}
	c.report.Matched++
	c.report.Bytes += got.Size
	return nil
}

// fileTries is how often a file is asked for that cannot be had now.
const fileTries = 30

// fetch reads a file, and returns what a document of it says.
func (c *fileComparison) fetch(ctx context.Context, id string) (d filelink.Document, err error) {
	for range fileTries {
		strong, old := sha256.New(), md5.New()
		counted := &countedWriter{to: io.MultiWriter(strong, old)}
		err = c.registry.ReadFile(ctx, id, counted)
		if err == nil {
			return filelink.Document{
				Hash: "md5:" + hex.EncodeToString(old.Sum(nil)), SHA256: hex.EncodeToString(strong.Sum(nil)), Size: counted.count,
			}, nil
		}
		var refused *client.Error
		if !client.IsBusy(err) || !errors.As(err, &refused) || !sleep.For(ctx, max(refused.RetryAfter, time.Second)) {
			return d, err
		}
	}
	return d, err
}

// countedWriter counts the bytes that are written.
type countedWriter struct {
	to    io.Writer
	count int64
}

// Write implements io.Writer.
func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.count += int64(n)
	return n, err
}
