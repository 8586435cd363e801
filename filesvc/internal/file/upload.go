package file

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/gabriel-vasile/mimetype"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Upload has the bytes of a file that a client uploads.
type Upload struct {
	Body     io.Reader // returns io.EOF only after the whole request has arrived
	Title    string    // the file's name according to the client
	Declared string    // the type that the client declared; "": none
	Length   int64     // maximum number of bytes that Body can have according to the headers; -1: not known
}

// Add creates a file with its bytes. It returns the same faults as Upload.
func (s *Service) Add(ctx context.Context, by identity.Identity, u Upload) (stored File, err error) {
	defer func() { s.Counts.count(stored.Size, err) }()
	if err := s.admit(ctx, by, u); err != nil {
		return File{}, err
	}
	f, err := s.create(ctx, by, "")
	if err != nil {
		return File{}, err
	}
	if stored, err = s.receive(ctx, f, u); err != nil {
		err = errors.Join(err, s.discard(context.WithoutCancel(ctx), f.ID))
	}
	return stored, err
}

// discard deletes a file whose id the client never learns, if the file has no bytes. If that fails, the collector
// deletes the file.
func (s *Service) discard(ctx context.Context, id string) error {
	err := ErrStale
	for range maxRetries {
		f, gone := s.files.Get(ctx, id)
		if errors.Is(gone, ErrNotFound) || gone == nil && f.State != Registered {
			return nil
		}
		if gone != nil {
			return gone
		}
		if err = s.files.Delete(ctx, f); !errors.Is(err, ErrStale) {
			break
		}
	}
	return err
}

// Upload adds the bytes to a file that the broker has registered. Faults: Forbidden if the file already has its
// bytes, has another MD5, or belongs to another broker; TooLarge; Full if there is no room.
func (s *Service) Upload(ctx context.Context, by identity.Identity, id string, u Upload) (stored File, err error) {
	defer func() { s.Counts.count(stored.Size, err) }()
	f, err := s.Get(ctx, id)
	switch {
	case err != nil:
		return File{}, err
	case f.Broker != by.Broker:
		return File{}, fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden: another broker registered this file.")
	case f.State != Registered:
		return File{}, uploaded()
	}
	if err := s.admit(ctx, by, u); err != nil {
		return File{}, err
	}
	return s.receive(ctx, f, u)
}

func uploaded() error {
	return fault.New(fault.Forbidden, fault.URL, "doc_id", "Content already uploaded")
}

// admit refuses an upload whose declared length is too large, before a byte is read.
func (s *Service) admit(ctx context.Context, by identity.Identity, u Upload) error {
	if u.Length > s.limits.FileBytes+maxForm {
		return s.tooLarge()
	}
	return s.checkQuota(ctx, by, 0, max(u.Length, 0))
}

// maxForm is the number of bytes that a form may have in addition to its file.
const maxForm = 2 << 20

func (s *Service) tooLarge() error {
	return fault.New(fault.TooLarge, fault.Body, "file", "The file has more than %d bytes.", s.limits.FileBytes)
}

// receive stores the bytes, and then the metadata with the name of the bytes.
func (s *Service) receive(ctx context.Context, f File, u Upload) (File, error) {
	detected, head, err := Detect(u.Body)
	if err != nil {
		return File{}, err
	}
	next := f
	next.Title, next.Declared, next.Detected = Title(u.Title), u.Declared, detected
	next.Blob = f.ID + "-" + random(blobBytes)
	in := &counted{
		from: head, most: s.limits.FileBytes, md5: md5.New(), sha256: sha256.New(), want: f.MD5, tooLarge: s.tooLarge,
	}
	if err := s.bytes.Put(ctx, next.Blob, in); err != nil {
		if errors.Is(err, ErrFull) {
			full := fault.New(fault.Full, fault.Body, "file", "The registry has no room for files now; the operator knows.")
			err = fmt.Errorf("%w: %w", full, err)
		}
		return File{}, err
	}
	next.MD5, next.SHA256, next.Size = in.sum(in.md5), in.sum(in.sha256), in.size
	return s.store(ctx, f, next)
}

// headSize is the number of bytes from which the type of a file is detected.
const headSize = 4 << 10

// Detect detects the type of bytes from their beginning. The result `all` is a reader of all bytes, including
// this beginning.
func Detect(from io.Reader) (detected string, all io.Reader, err error) {
	head := bufio.NewReaderSize(from, headSize)
	first, err := head.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, err
	}
	return mimetype.Detect(first).String(), head, nil
}

// store replaces the metadata `f` of a file without bytes by the metadata `next`. If a document has claimed or
// named the file meanwhile, the new metadata say so, too. If the metadata have changed in any other way, or if the
// same bytes were removed, store returns a fault and deletes the bytes.
func (s *Service) store(ctx context.Context, f, next File) (File, error) {
	stored, err := s.change(ctx, f.ID, func(now *File) error {
		switch {
		case now.Blob == next.Blob: // an earlier try has stored these metadata, but its answer was lost
			next = *now
			return errSame
		case now.State == Stored:
			return uploaded()
		case now.State == Removed:
			return gone()
		case now.State != Registered:
			return notFound()
		case now.Swept != f.Swept:
			return fault.New(fault.Conflict, fault.URL, "doc_id", "The upload took too long; repeat the request.")
		}
		if err := s.refuseRemoved(ctx, next.SHA256); err != nil {
			return err
		}
		next.Named, next.Swept, next.Revision = now.Named, now.Swept, now.Revision
		next.State, next.Touched, next.Seen, next.Picture = Stored, s.time(), 0, now.Picture
		*now = next
		return nil
	})
	s.arrivals.Add(1)
	s.want(stored)
	switch fault.KindOf(err) {
	case fault.Internal, fault.Unavailable:
		if errors.Is(err, errSame) {
			return next, nil
		}
		return stored, err // the bytes stay, because the change may have been stored
	default:
		return stored, errors.Join(err, s.bytes.Remove(context.WithoutCancel(ctx), next.Blob))
	}
}

// counted counts and hashes the bytes of a file. At the end it checks the MD5.
type counted struct {
	from        io.Reader
	most, size  int64
	md5, sha256 hash.Hash
	want        string // the MD5 that the bytes must have; "": any
	tooLarge    func() error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.size += int64(n)
	if c.size > c.most {
		return 0, c.tooLarge()
	}
	c.md5.Write(p[:n])
	c.sha256.Write(p[:n])
	if errors.Is(err, io.EOF) && c.want != "" && c.sum(c.md5) != c.want {
		return 0, fault.New(fault.Forbidden, fault.Body, "file", "Invalid checksum")
	}
	return n, err
}

func (c *counted) sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
