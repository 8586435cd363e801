package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Snapshot lists the files that hold all listed assets (docs/contract.md, "Snapshot").
type Snapshot struct {
	Position          Timestamp `json:"position"` // the offset to follow the feed from
	Date              Timestamp `json:"date"`     // time at which it was begun
	Assets            int64     `json:"assets"`
	Bytes             int64     `json:"bytes"`             // of all files
	UncompressedBytes int64     `json:"uncompressedBytes"` // of all lines
	Checkpoint        string    `json:"checkpoint"`        // of the public log; empty: none
	Segments          []Segment `json:"segments"`          // in the order of ids

	// Start is the position to follow the feed from.
	Start Position `json:"-"`
}

// Segment is a file of a snapshot, with the assets of a range of ids.
type Segment struct {
	From              string `json:"from"` // lowest id
	To                string `json:"to"`   // highest id
	Assets            int64  `json:"assets"`
	Bytes             int64  `json:"bytes"`             // of the file
	UncompressedBytes int64  `json:"uncompressedBytes"` // of the lines
	SHA256            string `json:"sha256"`            // of the file, in hexadecimal digits
	Path              string `json:"path"`
}

// ErrSegment is returned for a file that is not as the snapshot says.
var ErrSegment = errors.New("the segment is damaged")

// Snapshot reads the list of the newest snapshot's files. IsNotFound reports that there
// is no snapshot.
func (c *Client) Snapshot(ctx context.Context) (Snapshot, error) {
	r := read(path("snapshot"), nil)
	body, err := call[Snapshot](ctx, c, r)
	body.Data.Start = Position{body.Data.Position, serverOf(r, body.header)}
	return body.Data, err
}

// Segment reads a file of a snapshot. After a break it goes on where the file ended, as
// often as bytes come. IsNotFound reports that the file is gone: read the snapshot
// again. The error wraps ErrSegment if the file has another length or hash.
func (c *Client) Segment(ctx context.Context, s Segment) ([]byte, error) {
	if !strings.HasPrefix(s.Path, "/") || s.Bytes < 0 || s.Bytes > maxAnswer {
		return nil, fmt.Errorf("%w: the snapshot lists %d bytes at the path %.200q", ErrSegment, s.Bytes, s.Path)
	}
	file := make([]byte, 0, s.Bytes)
	for tries := c.retry.start(); ; {
		before := len(file)
		more, err := c.readFrom(ctx, s, file)
		if file = more; err == nil {
			break
		}
		if len(file) > before {
			tries = c.retry.start()
		}
		refusal, _ := errors.AsType[*Error](err)
		if ctx.Err() != nil || endOf(err) == final || !tries.pause(ctx, refusal) {
			return nil, err
		}
	}
	if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, fmt.Errorf("%w: %s has the hash %x and %d bytes, want %d", ErrSegment, s.Path, sum, len(file), s.Bytes)
	}
	return file, nil
}

// readFrom reads the rest of a file whose beginning is there, and appends it. With an
// error, it returns the bytes that have come.
func (c *Client) readFrom(ctx context.Context, s Segment, file []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r := request{method: http.MethodGet, path: s.Path}
	req, err := c.request(ctx, r, nil)
	if err != nil {
		return file, err
	}
	// A transport that asks for gzip by itself would hide the length of a part.
	req.Header.Set("Accept-Encoding", "identity")
	if len(file) > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", len(file)))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return file, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		file = file[:0]
	case http.StatusRequestedRangeNotSatisfiable:
		return file, fmt.Errorf("%w: %s has %d bytes, want %d", ErrSegment, s.Path, len(file), s.Bytes)
	default:
		_, err := readAnswer(r, resp)
		return file, err
	}
	return appendBody(file, s, resp.Body)
}

// appendBody appends the body of an answer to a file, up to one byte more than it has.
func appendBody(file []byte, s Segment, body io.Reader) ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(body, s.Bytes+1-int64(len(file))))
	file = append(file, rest...)
	switch {
	case err != nil:
		return file, fmt.Errorf("%s: the answer ended early: %w", s.Path, err)
	case int64(len(file)) > s.Bytes:
		return file, fmt.Errorf("%w: %s has more than %d bytes", ErrSegment, s.Path, s.Bytes)
	case int64(len(file)) < s.Bytes:
		return file, fmt.Errorf("%s: the answer ended after %d of %d bytes", s.Path, len(file), s.Bytes)
	}
	return file, nil
}
