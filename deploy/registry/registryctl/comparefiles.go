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

// filesReport is the result of the verification of files.
type filesReport struct {
	Matched int   `json:"matched"` // files whose bytes match their documents
	Bytes   int64 `json:"bytes"`   // bytes of these files
	Removed int   `json:"removed"` // files that were removed from the registry
	Foreign int   `json:"foreign"` // documents whose file the registry does not keep, or did not have at the checkpoint
}

// fileComparison compares each file once with the facts in its documents. It is safe for concurrent use.
type fileComparison struct {
	registry *client.Client

	mu     sync.Mutex
	known  map[string]filelink.Document // by id of the file: the first document that refers to it
	report filesReport
}

// compare compares the files of all documents of an asset. The argument `asset` is the asset's JSON, which matches
// the asset's newest leaf.
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

// compareFile compares a file with a document. It fetches the file only the first time.
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

// fileTries is the maximum number of requests for a file while the registry is busy.
const fileTries = 30

// fetch reads a file, and returns the hashes and the size that a document of the file must have.
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

// countedWriter counts the bytes that are written to it.
type countedWriter struct {
	to    io.Writer
	count int64
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.count += int64(n)
	return n, err
}
