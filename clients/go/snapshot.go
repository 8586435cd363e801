package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Snapshot lists the files that hold all listed assets (docs/contract.md, "Snapshot").
type Snapshot struct {
	Position          Timestamp `json:"position"` // the offset in the feed after which to read further changes
	Date              Timestamp `json:"date"`     // when the registry began the snapshot
	Assets            int64     `json:"assets"`
	Bytes             int64     `json:"bytes"`             // size of all segments
	UncompressedBytes int64     `json:"uncompressedBytes"` // size of the lines of all segments
	Files             int64     `json:"files"`             // files of documents; a file counts once for each asset
	FileBytes         int64     `json:"fileBytes"`         // size of the files of documents
	Checkpoint        string    `json:"checkpoint"`        // checkpoint of the public log; empty: none
	Segments          []Segment `json:"segments"`          // the files of the snapshot, in the order of ids

	// Start is Position in the form that Feed takes.
	Start Position `json:"-"`
}

// Segment is a file of a snapshot, with the assets of a range of ids.
type Segment struct {
	From              string `json:"from"` // lowest id
	To                string `json:"to"`   // highest id
	Assets            int64  `json:"assets"`
	Bytes             int64  `json:"bytes"`             // size of the file
	UncompressedBytes int64  `json:"uncompressedBytes"` // size of the lines
	SHA256            string `json:"sha256"`            // hash of the file, in hexadecimal digits
	Path              string `json:"path"`
}

// Bounds of a snapshot. The registry makes files of at most 4 MiB of lines; a file with only one asset may have
// more.
const (
	maxSegments = 100_000  // maximum number of files of a snapshot
	maxLines    = 16 << 20 // maximum number of bytes of one file's lines
	maxFile     = maxLines + 64<<10
	leastLine   = 64 // least bytes of a line, because it has an id and a dateModified
	maxPath     = 1 << 10
)

// ErrSegment is returned for a file that differs from its description in the snapshot.
var ErrSegment = errors.New("the segment is damaged")

// ErrSnapshot is returned for a snapshot that contradicts itself, or that is larger than a client accepts.
var ErrSnapshot = errors.New("the snapshot is not one of a registry")

// UnmarshalJSON implements json.Unmarshaler. It refuses a list of too many files without
// decoding all of them.
func (s *Snapshot) UnmarshalJSON(text []byte) error {
	type plain Snapshot
	var v struct {
		*plain
		Segments json.RawMessage `json:"segments"`
	}
	v.plain = (*plain)(s)
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	var err error
	s.Segments, err = listOf[Segment](v.Segments, maxSegments)
	return err
}

// check checks the list of files. A registry must be able to make each of the files. They must be in the order of
// their ids, and their totals must be equal to the totals of the snapshot.
func (s Snapshot) check() error {
	if _, err := s.Position.Time(); err != nil {
		return fmt.Errorf("%w: its position is %.50q", ErrSnapshot, s.Position)
	}
	var assets, bytes, lines int64
	before := ""
	for i, f := range s.Segments {
		if err := f.check(); err != nil {
			return fmt.Errorf("%w: file %d: %w", ErrSnapshot, i, err)
		}
		if f.From <= before {
			return fmt.Errorf("%w: file %d is not in the order of ids", ErrSnapshot, i)
		}
		before = f.To
		assets, bytes, lines = assets+f.Assets, bytes+f.Bytes, lines+f.UncompressedBytes
	}
	if assets != s.Assets || bytes != s.Bytes || lines != s.UncompressedBytes {
		return fmt.Errorf("%w: its files have %d assets in %d bytes and %d bytes of lines, and it says %d, %d and %d",
			ErrSnapshot, assets, bytes, lines, s.Assets, s.Bytes, s.UncompressedBytes)
	}
	return nil
}

// check returns nil if a registry may have made the file.
func (s Segment) check() error {
	switch {
	case s.Bytes < 0 || s.Bytes > maxFile:
		return fmt.Errorf("it has %d bytes, and may have %d", s.Bytes, maxFile)
	case s.UncompressedBytes < 0 || s.UncompressedBytes > maxLines:
		return fmt.Errorf("it has %d bytes of lines, and may have %d", s.UncompressedBytes, maxLines)
	case s.Assets < 0 || s.Assets > s.UncompressedBytes/leastLine:
		return fmt.Errorf("it has %d assets in %d bytes of lines", s.Assets, s.UncompressedBytes)
	case !isHex(s.From, 32) || !isHex(s.To, 32) || s.From > s.To:
		return fmt.Errorf("it has the ids from %.40q to %.40q", s.From, s.To)
	case !isHex(s.SHA256, 2*sha256.Size):
		return fmt.Errorf("it has the hash %.80q", s.SHA256)
	case !strings.HasPrefix(s.Path, "/") || len(s.Path) > maxPath:
		return fmt.Errorf("it has the path %.200q", s.Path)
	}
	return nil
}

// isHex reports whether a text has exactly this many lowercase hexadecimal digits.
func isHex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}

// Snapshot reads the list of the newest snapshot's files. IsNotFound is true for the error of a registry
// without a snapshot. The error wraps ErrSnapshot if the totals of the files differ from the totals of the
// snapshot. It also wraps ErrSnapshot if the list or a file is larger than a registry would make it.
func (c *Client) Snapshot(ctx context.Context) (Snapshot, error) {
	r := read(path("snapshot"), nil)
	body, err := call[Snapshot](ctx, c, r)
	if err != nil {
		return Snapshot{}, err
	}
	body.Data.Start = Position{body.Data.Position, serverOf(r, body.header)}
	return body.Data, body.Data.check()
}

// Segment reads a file of a snapshot. If the connection breaks, Segment tries again, and requests only the missing
// bytes. It does not give up as long as each try brings more bytes. If the file is gone, IsNotFound is true for the
// error; then read the snapshot again. The error wraps ErrSegment if the file has a different length or hash.
func (c *Client) Segment(ctx context.Context, s Segment) ([]byte, error) {
	if !strings.HasPrefix(s.Path, "/") || s.Bytes < 0 || s.Bytes > maxFile {
		return nil, fmt.Errorf("%w: the snapshot lists %d bytes at the path %.200q", ErrSegment, s.Bytes, s.Path)
	}
	var file []byte
	for tries := c.retry.start(); ; {
		before := len(file)
		more, err := c.readFrom(ctx, s, file)
		if file = more; err == nil {
			break
		}
		if len(file) > before {
			tries = c.retry.start()
		}
		if ctx.Err() != nil || endOf(err) == final || !tries.pause(ctx, err) {
			return nil, err
		}
	}
	if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, fmt.Errorf("%w: %s has the hash %x and %d bytes, want %d", ErrSegment, s.Path, sum, len(file), s.Bytes)
	}
	return file, nil
}

// readFrom reads the rest of a file that has begun to arrive, and appends it. After an error, it returns the
// bytes that have come.
func (c *Client) readFrom(ctx context.Context, s Segment, file []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r := request{method: http.MethodGet, path: s.Path}
	resp, err := c.do(ctx, r, nil, func(req *http.Request) {
		// Ask for an uncompressed answer. A transport that adds gzip itself hides the length of the answer.
		req.Header.Set("Accept-Encoding", "identity")
		if len(file) > 0 {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", len(file)))
		}
	})
	if err != nil {
		return file, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
		part, want := resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-%d/%d", len(file), s.Bytes-1, s.Bytes)
		if len(file) == 0 || part != want {
			return file, fmt.Errorf("%w: %s answers with the range %.80q, want %q", ErrSegment, s.Path, part, want)
		}
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

// appendBody appends the body of an answer to a file. It reads at most one byte more than the file should have.
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
