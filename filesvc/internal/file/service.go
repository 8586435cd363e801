package file

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"asset-registry/shared/errs"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/identity"
)

// Limits of files and brokers. All fields are required.
type Limits struct {
	FileBytes   int64 // bytes of one file
	BrokerBytes int64 // bytes of all files of a broker
	Waiting     int64 // files of a broker that are registered and not yet uploaded
}

// Service registers, stores, serves and collects files. It is safe for concurrent use, but only one call of Collect may
// run at a time.
type Service struct {
	files    Files
	readings Readings
	bytes    Bytes
	limits   Limits
	now      func() time.Time

	hour time.Duration // least time between two counts of hours (Reading.Hours)
	day  int64         // number of counts between which a day has passed

	counted int64         // the count of hours that the collector saw last
	since   time.Duration // when it first saw this count, on the clock of the argument `steady` of Collect

	former, strays map[string]time.Duration // when the run before, and this run, first saw bytes that no file names

	Counts   Counts
	held     atomic.Bool  // true: the removals could not be read yet, so no file is opened
	arrivals atomic.Int64 // number of uploads, and of documents that were found without the SHA-256 of their files
	wanted   chan string  // ids of files that need pictures
	missed   atomic.Bool  // true: files that are not in the channel `wanted` may need pictures, too
}

// NewService returns a service that uses the given stores.
func NewService(files Files, readings Readings, bytes Bytes, l Limits, now func() time.Time) *Service {
	s := &Service{
		files: files, readings: readings, bytes: bytes, limits: l, now: now, wanted: make(chan string, maxWanted),
		hour: hourLeast, day: dayHours,
	}
	s.missed.Store(true) // an earlier process may have left files without pictures
	return s
}

// time returns the current time in the precision of the stores.
func (s *Service) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

const (
	idBytes    = 16
	blobBytes  = 8
	maxRetries = 10 // how often a change is tried if other changes come between
)

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // Read never fails
	return hex.EncodeToString(b)
}

// Register creates a file without bytes. The bytes come later and must have the given MD5, in 32 hexadecimal
// digits. Register returns a fault of kind Forbidden if the broker would exceed a quota.
func (s *Service) Register(ctx context.Context, by identity.Identity, md5 string) (File, error) {
	if err := s.checkQuota(ctx, by, 1, 0); err != nil {
		return File{}, err
	}
	return s.create(ctx, by, md5)
}

func (s *Service) create(ctx context.Context, by identity.Identity, md5 string) (File, error) {
	f := File{
		ID: random(idBytes), Broker: by.Broker, KeyID: by.KeyID, MD5: md5,
		State: Registered, Touched: s.time(), Revision: 1,
	}
	err := s.files.Create(ctx, f)
	return f, errs.In(err, "register file")
}

// checkQuota returns a fault if a broker would exceed its quota with the given numbers of additional waiting
// files and bytes.
func (s *Service) checkQuota(ctx context.Context, by identity.Identity, waiting, bytes int64) error {
	has, err := s.files.Usage(ctx, by.Broker)
	switch {
	case err != nil:
		return fmt.Errorf("count the files of %s: %w", by.Broker, err)
	case waiting > 0 && has.Waiting+waiting > s.limits.Waiting:
		return fmt.Errorf("%w: %w", errQuota, fault.New(fault.Forbidden, fault.Body, "hash",
			"You have %d files that were registered and not uploaded; upload them first, or wait for a day.", has.Waiting))
	case has.Bytes+bytes > s.limits.BrokerBytes:
		return fmt.Errorf("%w: %w", errQuota, fault.New(fault.Forbidden, fault.Body, "file",
			"Your files have %d bytes, and may have %d; ask the operator for more.", has.Bytes, s.limits.BrokerBytes))
	}
	return nil
}

// Get returns a file, or a fault: NotFound if it does not exist, Gone if it was removed.
func (s *Service) Get(ctx context.Context, id string) (File, error) {
	f, err := s.find(ctx, id)
	switch f.State { // "" if err is not nil
	case Collected:
		return File{}, notFound()
	case Removed:
		return File{}, gone()
	}
	return f, err
}

// find returns a file in any state, or a fault of kind NotFound.
func (s *Service) find(ctx context.Context, id string) (File, error) {
	if !filelink.IsID(id) {
		return File{}, notFound()
	}
	f, err := s.files.Get(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return File{}, notFound()
	}
	return f, errs.In(err, "get file")
}

func notFound() error { return fault.New(fault.NotFound, fault.URL, "doc_id", "Not Found") }

// checkHeld returns a fault of kind Unavailable while the service refuses to open files.
func (s *Service) checkHeld() error {
	if !s.IsHeld() {
		return nil
	}
	return fault.New(fault.Unavailable, fault.URL, "files",
		"The registry does not know yet which files were removed; repeat the request later.")
}

// Open opens the bytes of a file in the state Stored. If a store sends other bytes, reading the whole file fails. The
// caller closes them.
func (s *Service) Open(ctx context.Context, f File) (blob Blob, err error) {
	if blob, err = s.open(ctx, f); err == nil {
		blob = verifyWhole(blob, f, &s.Counts.Unread)
	}
	return blob, err
}

// OpenVerified does what Open does, and also compares bytes of this machine.
func (s *Service) OpenVerified(ctx context.Context, f File) (Blob, error) {
	blob, err := s.open(ctx, f)
	if err != nil {
		return nil, err
	}
	return newWhole(blob, f, &s.Counts.Unread), nil
}

func (s *Service) open(ctx context.Context, f File) (blob Blob, err error) {
	defer func() {
		if err != nil && ctx.Err() == nil { // the client is still connected
			s.Counts.Unread.Add(1)
		}
	}()
	if err := s.checkHeld(); err != nil {
		return nil, err
	}
	blob, err = s.bytes.Open(ctx, f.Blob)
	if err != nil {
		return nil, fmt.Errorf("open file %s: %w", f.ID, err)
	}
	size, err := SizeOf(blob)
	if err == nil && size != f.Size {
		err = fmt.Errorf("it is damaged: it has %d bytes instead of %d", size, f.Size)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open file %s: %w", f.ID, err), blob.Close())
	}
	return blob, nil
}

// Claim describes a document that is about to name a file.
type Claim struct {
	MD5    string // the hash of the document
	Broker string // the broker who writes the document
	Signed bool   // the address had a valid signature
}

// fresh is the age from which a claim updates the field Touched of a file. So claims of one file at the same time
// do not conflict with each other.
const fresh = time.Minute

// Claim keeps a file for at least a day minus a minute, whatever the clocks show. So an asset whose document names the
// file can be stored. Claim returns a fault of kind Invalid or Forbidden if the document is not allowed to name the
// file.
func (s *Service) Claim(ctx context.Context, id string, c Claim) (File, error) {
	var claimed File
	changed, err := s.change(ctx, id, func(f *File) error {
		claimed = *f
		switch {
		case f.State == Collected:
			return fault.New(fault.Invalid, fault.Body, "url", "There is no such file.")
		case f.State == Removed:
			return fault.New(fault.Invalid, fault.Body, "url", "The operator has removed this file.")
		case !c.Signed && c.Broker != f.Broker:
			return fault.New(fault.Forbidden, fault.Body, "url",
				"This file is another broker's; use the url with the signature that the upload returned.")
		case f.MD5 != c.MD5:
			return fault.New(fault.Invalid, fault.Body, "hash", "The file has another hash.")
		case f.Named || f.Seen == 0 && s.now().Sub(f.Touched).Abs() < fresh:
			return errSame
		}
		f.Touched, f.Seen = s.time(), 0
		return nil
	})
	if errors.Is(err, errSame) {
		return claimed, nil
	}
	return changed, err
}

// Name marks a file as named by a document. If the document is an illustration, the file also needs pictures. A
// file that does not exist is ignored, because it may belong to another registry.
func (s *Service) Name(ctx context.Context, id string, isIllustration bool) error {
	named, err := s.change(ctx, id, func(f *File) error {
		wants := isIllustration && f.Picture == ""
		if f.Named && !wants {
			return errSame
		}
		f.Named = true
		if wants {
			f.Picture = Wanted
		}
		return nil
	})
	s.want(named)
	if fault.KindOf(err) == fault.NotFound || errors.Is(err, errSame) {
		return nil
	}
	return err
}

// errSame is returned by the argument `edit` of the method `change` if the file need not change.
var errSame = errors.New("nothing changes")

// change edits a file and stores it. If the file was changed meanwhile, change edits the newest revision again.
func (s *Service) change(ctx context.Context, id string, edit func(*File) error) (File, error) {
	for range maxRetries {
		f, err := s.find(ctx, id)
		if err != nil {
			return File{}, err
		}
		if err := edit(&f); err != nil {
			return File{}, err
		}
		f.Revision++
		err = s.files.Replace(ctx, f)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, ErrStale) {
			return File{}, fmt.Errorf("change file %s: %w", id, err)
		}
	}
	return File{}, fault.New(fault.Conflict, fault.URL, "doc_id", "Others keep changing this file; repeat the request.")
}

// MaxList is the largest number of files that a call of List returns.
const MaxList = 100

// MaxRemoved is the largest number of ids that a call of ListRemoved returns.
const MaxRemoved = 1000

// ListRemoved returns ids of files that were taken down, sorted: at most `limit` ids, all greater than the argument
// `after`. The result `next` is as in List. ListRemoved sees every removal that was acknowledged before. The list
// need not be secret: a request for a removed file gets 410, so anybody can find out that it was removed.
func (s *Service) ListRemoved(ctx context.Context, after string, limit int) (ids []string, next string, err error) {
	ids, err = s.bytes.Removed(ctx, after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("list removed files: %w", err)
	}
	if len(ids) == limit {
		next = ids[len(ids)-1]
	}
	return ids, next, nil
}

// lookedAt is the largest number of files that a call of List reads. It is larger than a page, because files that are
// being deleted lie between the others.
const lookedAt = 5 * page

// List returns at most `limit` files whose ids are greater than the argument `after`, sorted by id. They are files
// of the caller's broker. An administrator gets the files of the given broker, or of all brokers if `broker` is "".
// For the files that follow, call List again with `next` as the argument `after`. If `next` is "", no more files
// follow. A list may be short, or even empty, although more files follow. Faults: Forbidden for files of another
// broker.
func (s *Service) List(ctx context.Context, by identity.Identity, broker, after string, limit int) (
	found []File, next string, err error,
) {
	if by.Role != identity.Administrator {
		if broker != "" && broker != by.Broker {
			return nil, "", fault.New(fault.Forbidden, fault.URL, "permission",
				"Forbidden: only the administrator lists files of other brokers.")
		}
		broker = by.Broker
	}
	for seen := 0; seen < lookedAt; {
		var files []File
		var err error
		if broker == "" {
			files, err = s.files.Page(ctx, after, page)
		} else {
			files, err = s.files.Own(ctx, broker, after, page)
		}
		if err != nil {
			return nil, "", fmt.Errorf("list files: %w", err)
		}
		for _, f := range files {
			after = f.ID
			if f.State == Collected {
				continue
			}
			if found = append(found, f); len(found) == limit {
				return found, after, nil
			}
		}
		if seen += len(files); len(files) < page {
			return found, "", nil
		}
	}
	return found, after, nil
}

// Counts has the counts of this process: uploads by result, received and sent bytes of files, and collected and
// removed files.
type Counts struct {
	Stored  atomic.Int64
	Refused atomic.Int64 // uploads that were refused with a reason for the client
	Quota   atomic.Int64 // uploads that were refused because the broker has too many files or bytes (errQuota)
	Full    atomic.Int64 // uploads that failed because the store had no room
	Failed  atomic.Int64

	Received atomic.Int64 // bytes of stored uploads
	Sent     atomic.Int64 // bytes sent to readers
	Unread   atomic.Int64 // readings of a stored file whose bytes cannot be opened, or are others

	Drawn   atomic.Int64 // files whose pictures were made
	Undrawn atomic.Int64 // files from which no picture can be made
	GivenUp atomic.Int64 // files whose drawing something else has ended too often (ErrEnded)

	Collected atomic.Int64
	Removed   atomic.Int64 // files removed by an administrator, including other files with the same bytes
}

// errQuota is the error of a refused upload: the broker has too many waiting files, or the broker's files have too
// many bytes.
var errQuota = errors.New("the broker has too many files")

// count counts an upload of the given number of bytes that ended with err.
func (c *Counts) count(bytes int64, err error) {
	switch kind := fault.KindOf(err); {
	case err == nil:
		c.Stored.Add(1)
		c.Received.Add(bytes)
	case errors.Is(err, errQuota):
		c.Quota.Add(1)
	case kind == fault.Full:
		c.Full.Add(1)
	case kind == fault.Internal || kind == fault.Unavailable:
		c.Failed.Add(1)
	default:
		c.Refused.Add(1)
	}
}
