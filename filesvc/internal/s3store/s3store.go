// Package s3store keeps the bytes of files in a bucket of an object store that has the API of S3 (file.Bytes).
// Several processes may share a bucket.
package s3store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"asset-registry/filesvc/internal/disk"
	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
)

const (
	removals     = "removed/" // prefix of keys that hold metadata of files that were taken down
	region       = "us-east-1"
	putTimeout   = 30 * time.Second // time limit for sending a file to the store, if the store takes bytes all the time
	readTimeout  = 10 * time.Second // how long a read waits for more bytes
	attempts     = 2
	maxRemoval   = 64 << 10 // bytes of the metadata of one file
	listMost     = 1000     // names that the store returns in one answer
	connections  = 64       // idle connections that are kept for the next requests
	plainContent = "application/octet-stream"
)

// MaxFile is the size in bytes of the largest file that an object store takes in one request.
const MaxFile = 5 << 30

// Store keeps each blob in an object that has the name of the blob.
type Store struct {
	client         minio.Core
	bucket, prefix string
	spool          string        // directory of uploads before they go to the store
	disk           *disk.Disk    // the disk of that directory
	timeout        time.Duration // limit of an operation that transfers no file
}

// Address says where a bucket is.
type Address struct {
	host, bucket, prefix, region string
	secure                       bool
}

// IsAddress reports whether a text is the address of a bucket, instead of a path.
func IsAddress(text string) bool { return strings.HasPrefix(text, "s3+") }

// Parse reads an address: s3+https://HOST[:PORT]/BUCKET[/PREFIX][?region=REGION], or s3+http. The error does not
// quote the text, because it may contain a password.
func Parse(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3+https" && u.Scheme != "s3+http" || u.Host == "" {
		return Address{}, errors.New("the address of the store of files must be s3+https://HOST/BUCKET, or s3+http")
	}
	if u.User != nil {
		return Address{}, errors.New("the address of the store of files must have no user: AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY, or the file of AWS_SHARED_CREDENTIALS_FILE, have the credentials")
	}
	bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if bucket == "" {
		return Address{}, errors.New("the address of the store of files must name a bucket: s3+https://HOST/BUCKET")
	}
	for name := range u.Query() {
		if name != "region" {
			return Address{}, fmt.Errorf("the address of the store of files has %q, which is not known; want region", name)
		}
	}
	if prefix != "" {
		prefix += "/"
	}
	return Address{
		host: u.Host, bucket: bucket, prefix: prefix, region: cmp.Or(u.Query().Get("region"), region),
		secure: u.Scheme == "s3+https",
	}, nil
}

// Open returns the store at an address. It sends no request. Before an upload goes to the store, it is written to a
// file in the directory `spool`. If `spool` is "", the file is in the system's directory for temporary files. The
// timeout limits each operation that transfers no file.
func Open(a Address, spool string, timeout time.Duration) (*Store, error) {
	transport, err := minio.DefaultTransport(a.secure)
	if err != nil {
		return nil, err
	}
	transport.DialContext = (&net.Dialer{Timeout: timeout}).DialContext
	transport.MaxIdleConnsPerHost = connections
	keys := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
	})
	if v, err := keys.GetWithContext(nil); err != nil || v.AccessKeyID == "" {
		return nil, errors.New("the store of files needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, " +
			"or name their file in AWS_SHARED_CREDENTIALS_FILE")
	}
	client, err := minio.NewCore(a.host, &minio.Options{
		Creds: keys, Secure: a.secure, Region: a.region, Transport: checked{transport}, MaxRetries: attempts,
	})
	if err != nil {
		return nil, err
	}
	return &Store{
		client: *client, bucket: a.bucket, prefix: a.prefix, spool: spool, disk: disk.New(), timeout: timeout,
	}, nil
}

func (s *Store) key(name string) (string, error) {
	if !file.IsBlob(name) {
		return "", fmt.Errorf("%q is no name of bytes", name)
	}
	return s.prefix + name, nil
}

// The function `why` converts an error of the client of the store to an error that file.Bytes specifies. ctx is the
// context of the caller.
func why(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	answer := minio.ToErrorResponse(err)
	switch answer.Code {
	case minio.NoSuchKey:
		return file.ErrNotFound
	case "XMinioStorageFull", "QuotaExceeded", "InsufficientStorage":
		return fmt.Errorf("%w: %w", file.ErrFull, err)
	}
	if answer.StatusCode == http.StatusInsufficientStorage {
		return fmt.Errorf("%w: %w", file.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", fault.New(fault.Unavailable, fault.URL, "files",
		"The store of the files does not answer as it should; repeat the request later."), err)
}

// Put implements file.Bytes. It first writes the bytes to a file on this machine. So it knows their length when
// it sends them to the store, and a slow client does not occupy a connection to the store.
func (s *Store) Put(ctx context.Context, name string, from io.Reader) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	w, err := disk.Do(ctx, s.disk, func() (*os.File, error) {
		w, err := os.CreateTemp(s.spool, "asset-registry-upload-")
		if err != nil {
			return nil, err
		}
		return w, os.Remove(w.Name()) // closing the file, or a kill, frees its disk space
	})
	if err != nil {
		return err
	}
	defer w.Close()
	size, err := io.Copy(&disk.Writer{Context: ctx, Disk: s.disk, File: w}, from)
	if err != nil {
		return err
	}
	if _, err := w.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return s.put(ctx, key, w, size)
}

// put stores bytes under a key. The store checks their MD5.
func (s *Store) put(ctx context.Context, key string, from io.Reader, size int64) error {
	within, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	silent := time.AfterFunc(s.timeout, cancel)
	defer silent.Stop()
	_, err := s.client.Client.PutObject(within, s.bucket, key, from, size, minio.PutObjectOptions{
		ContentType: plainContent, DisableMultipart: true, SendContentMd5: true, Progress: progress{silent, s.timeout},
	})
	return why(ctx, err)
}

// progress renews a timer. The client of the store calls Read with all bytes that go to the store.
type progress struct {
	silent *time.Timer
	within time.Duration
}

func (p progress) Read(sent []byte) (int, error) {
	p.silent.Reset(p.within)
	return len(sent), nil
}

// stat returns the properties of an object, or file.ErrNotFound.
func (s *Store) stat(ctx context.Context, key string) (minio.ObjectInfo, error) {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	info, err := s.client.StatObject(within, s.bucket, key, minio.StatObjectOptions{})
	return info, why(ctx, err)
}

func (s *Store) Open(ctx context.Context, name string) (file.Blob, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	info, err := s.stat(ctx, key)
	if err != nil {
		return nil, err
	}
	return &object{store: s, ctx: ctx, key: key, size: info.Size}, nil
}

// listVersions returns options to list all versions of the objects whose keys have a prefix.
func listVersions(prefix string) minio.ListObjectsOptions {
	return minio.ListObjectsOptions{Prefix: prefix, WithVersions: true, MaxKeys: listMost}
}

// Remove implements file.Bytes. In a bucket with versions, it removes all versions.
func (s *Store) Remove(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for version := range s.client.ListObjectsIter(within, s.bucket, listVersions(key)) {
		if version.Err != nil {
			return why(ctx, version.Err)
		}
		if version.Key != key {
			continue
		}
		// An object that was stored before its bucket kept versions has the version "null". A request without a version
		// would only hide the object.
		of := minio.RemoveObjectOptions{VersionID: version.VersionID}
		if err := s.client.RemoveObject(within, s.bucket, key, of); err != nil {
			return why(ctx, err)
		}
	}
	return why(ctx, within.Err())
}

func (s *Store) Names(ctx context.Context, after string, limit int) ([]string, error) {
	return s.list(ctx, s.prefix, after, limit, file.IsBlob)
}

// list returns at most limit names of objects that follow the prefix and are greater than the argument `after`. It
// leaves out names that are not ours, and refuses a list in which our names are not sorted.
func (s *Store) list(
	ctx context.Context, prefix, after string, limit int, isOurs func(string) bool,
) (found []string, err error) {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	last := ""
	for o := range s.client.ListObjectsIter(within, s.bucket, minio.ListObjectsOptions{
		Prefix: prefix, StartAfter: prefix + after, MaxKeys: min(limit, listMost),
	}) {
		if o.Err != nil {
			return nil, why(ctx, o.Err)
		}
		name, isBelow := strings.CutPrefix(o.Key, prefix)
		if !isBelow || !isOurs(name) {
			continue
		}
		if name <= last {
			return nil, why(ctx, fmt.Errorf("%w: the list has %s after %s", errAnswer, name, last))
		}
		if last = name; name > after {
			found = append(found, name)
		}
		if len(found) == limit {
			return found, nil
		}
	}
	return found, why(ctx, within.Err())
}

func (s *Store) IsBefore(ctx context.Context, name string, at time.Time) (bool, error) {
	key, err := s.key(name)
	if err != nil {
		return false, err
	}
	info, err := s.stat(ctx, key)
	if errors.Is(err, file.ErrNotFound) {
		return false, nil
	}
	return err == nil && info.LastModified.Before(at), err
}

// Tidy implements file.Bytes. It has nothing to remove, because Put stores an object whole or not at all.
func (s *Store) Tidy(context.Context, time.Time) error { return nil }

func (s *Store) NoteRemoval(ctx context.Context, f file.File) error {
	if !filelink.IsID(f.ID) {
		return fmt.Errorf("%q is no id of a file", f.ID)
	}
	key := s.prefix + removals + f.ID
	if _, err := s.stat(ctx, key); !errors.Is(err, file.ErrNotFound) {
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return s.put(ctx, key, bytes.NewReader(text), int64(len(text)))
}

func (s *Store) Removals(ctx context.Context) (found []file.File, err error) {
	ids, err := s.Removed(ctx, "", math.MaxInt)
	if err != nil {
		return nil, err
	}
	return file.ReadRemovals(ids, func(id string) ([]byte, error) { return s.read(ctx, s.prefix+removals+id) })
}

func (s *Store) Removed(ctx context.Context, after string, limit int) ([]string, error) {
	return s.list(ctx, s.prefix+removals, after, limit, filelink.IsID)
}

// read returns all bytes of a small object.
func (s *Store) read(ctx context.Context, key string) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	body, _, _, err := s.client.GetObject(within, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, why(ctx, err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxRemoval))
	return text, why(ctx, err)
}

// object reads the bytes of an object.
type object struct {
	store    *Store
	ctx      context.Context
	key      string
	size, at int64

	body io.ReadCloser // reads the bytes that begin at the offset o.at; nil: not open
	end  context.CancelFunc
}

// Read implements io.Reader. It fails if no byte arrives within readTimeout.
func (o *object) Read(p []byte) (int, error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	if o.body == nil {
		if err := o.open(); err != nil {
			return 0, err
		}
	}
	late := time.AfterFunc(readTimeout, o.end)
	defer late.Stop()
	n, err := o.body.Read(p[:min(int64(len(p)), o.size-o.at)])
	o.at += int64(n)
	switch {
	case errors.Is(err, io.EOF) && o.at < o.size:
		return n, io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF):
		return n, nil
	}
	return n, why(o.ctx, err)
}

// open requests the bytes that begin at the offset o.at.
func (o *object) open() error {
	ctx, end := context.WithCancel(o.ctx)
	late := time.AfterFunc(o.store.timeout, end)
	defer late.Stop()
	options := minio.GetObjectOptions{}
	if o.at > 0 {
		options.Set("Range", fmt.Sprintf("bytes=%d-", o.at))
	}
	body, info, _, err := o.store.client.GetObject(ctx, o.store.bucket, o.key, options)
	if err == nil && info.Size != o.size-o.at {
		short := fmt.Errorf("%w: it has %d of %d bytes from %d on", errAnswer, info.Size, o.size, o.at)
		err = errors.Join(short, body.Close())
	}
	if err != nil {
		end()
		return why(o.ctx, err)
	}
	o.body, o.end = body, end
	return nil
}

func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the first byte")
	}
	if offset != o.at {
		o.at = offset
		return offset, o.Close()
	}
	return offset, nil
}

func (o *object) Close() error {
	if o.body == nil {
		return nil
	}
	o.end()
	err := o.body.Close()
	o.body = nil
	return err
}

var _ file.Bytes = (*Store)(nil)
