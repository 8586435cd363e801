package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// slowest is the least speed of an upload, in bytes a second. The registry ends a slower upload. The time limit of a
// try is Config.Timeout plus the time that an upload takes at this speed.
const slowest = 64 << 10 / 10

// Upload sends the file at a path to the registry, and adds a document that refers to it. By default the
// document's title and format are the name and the type of the file; its URL and hash describe the file. The
// file is read while it is sent. An upload is retried like a read, because an extra file does no harm: the
// registry removes a file to which no document refers after a day.
func (d Documents) Upload(ctx context.Context, path string, document Document, w Write) (Document, error) {
	if err := checkIDs(d.asset); err != nil {
		return document, err
	}
	stored, err := d.client.upload(ctx, filepath.Base(path), func() (fs.File, error) { return os.Open(path) })
	if err != nil {
		return document, err
	}
	document.URL, document.Hash = stored.URL, stored.Hash
	document.Title, document.Format = cmp.Or(document.Title, stored.Title), cmp.Or(document.Format, stored.Format)
	return d.Add(ctx, document, w)
}

// StoredFile describes a file that the registry keeps, with the fields of a document.
type StoredFile struct {
	URL    string `json:"url"`
	Hash   string `json:"hash"`
	Title  string `json:"title"`
	Format string `json:"format"`
}

// StoreFile sends a file of a file system to the registry, as Documents.Upload does, and adds no document.
// After a day, the registry removes a file to which no document refers.
func (c *Client) StoreFile(ctx context.Context, from fs.FS, name string) (StoredFile, error) {
	return c.upload(ctx, filepath.Base(name), func() (fs.File, error) { return from.Open(name) })
}

// upload sends the file that the function `open` returns, with retries.
func (c *Client) upload(ctx context.Context, name string, open func() (fs.File, error)) (StoredFile, error) {
	tries := c.retry.start()
	for {
		got, err := c.tryUpload(ctx, name, open)
		if err == nil || ctx.Err() != nil {
			return got, err
		}
		if _, isLocal := errors.AsType[*os.PathError](err); isLocal || endOf(err) == final || !tries.pause(ctx, err) {
			return got, err
		}
	}
}

// tryUpload sends a file once.
func (c *Client) tryUpload(ctx context.Context, name string, open func() (fs.File, error)) (s StoredFile, err error) {
	file, err := open()
	if err != nil {
		return s, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout+time.Duration(info.Size()/slowest)*time.Second)
	defer cancel()
	r := request{method: http.MethodPost, path: "/upload"}
	begin, end, contentType := formAround(name)
	resp, err := c.do(ctx, r, nil, func(req *http.Request) {
		req.Body = io.NopCloser(io.MultiReader(bytes.NewReader(begin), file, bytes.NewReader(end)))
		req.ContentLength = int64(len(begin)) + info.Size() + int64(len(end))
		req.Header.Set("Content-Type", contentType)
	})
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	got, err := readAnswer(r, resp)
	if err != nil {
		return s, err
	}
	var body struct {
		Data StoredFile `json:"data"`
	}
	if err := json.Unmarshal(got.text, &body); err != nil || body.Data.URL == "" {
		return s, fmt.Errorf("%s %s: the answer names no file", r.method, r.path)
	}
	return body.Data, nil
}

// formAround returns the parts of an upload's form before and after the bytes of a file with this name.
func formAround(name string) (begin, end []byte, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", multipart.FileContentDisposition("file", name))
	header.Set("Content-Type", cmp.Or(mime.TypeByExtension(filepath.Ext(name)), "application/octet-stream"))
	_, _ = w.CreatePart(header) // writing to a buffer never fails
	begin = bytes.Clone(b.Bytes())
	b.Reset()
	_ = w.Close()
	return begin, b.Bytes(), w.FormDataContentType()
}

// ReadFile writes the bytes of a file of the registry to a writer. Without a key it reads public files only;
// with a key it also reads the files of the key's broker. id is the end of the file's address.
func (c *Client) ReadFile(ctx context.Context, id string, to io.Writer) error {
	r := request{method: http.MethodGet, path: "/get/" + url.PathEscape(id)}
	resp, err := c.do(ctx, r, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNoContent:
		return fmt.Errorf("%s %s: got %d, want the file: its bytes have not come", r.method, r.path, resp.StatusCode)
	default:
		_, err := readAnswer(r, resp) // no such answer is the registry's
		return err
	}
	if _, err := io.Copy(to, resp.Body); err != nil {
		return fmt.Errorf("%s %s: the answer ended early: %w", r.method, r.path, err)
	}
	return nil
}

// RemovedFile is a file that was taken down.
type RemovedFile struct {
	ID        string `json:"id"`
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"`
	RemovedBy string `json:"removed_by"` // key of the administrator
	Reason    string `json:"reason"`
}

// RemoveFile takes a file down permanently, and also all files with the same bytes. It needs an
// administrator's key. Removing a file again has no effect.
func (c *Client) RemoveFile(ctx context.Context, id, reason string) (RemovedFile, error) {
	body, err := call[RemovedFile](ctx, c, request{
		method: http.MethodDelete, path: "/get/" + url.PathEscape(id), query: url.Values{"reason": {reason}},
		repeatable: true,
	})
	return body.Data, err
}

// File is a file of the registry, as a list shows it.
type File struct {
	ID        string    `json:"id"`
	Broker    string    `json:"broker"`
	State     string    `json:"state"` // "registered", "stored" or "removed"
	Hash      string    `json:"hash,omitempty"`
	SHA256    string    `json:"sha256,omitempty"`
	Size      int64     `json:"size"`
	Title     string    `json:"title,omitempty"`
	Format    string    `json:"format,omitempty"`
	Date      Timestamp `json:"date"`                 // time of the registration, the upload or the newest document
	Named     bool      `json:"named"`                // a document has referred to it
	RemovedBy string    `json:"removed_by,omitempty"` // id of the administrator's key; only administrators see it
	Reason    string    `json:"reason,omitempty"`     // reason of the removal; only administrators see it
}

// Files returns the files of the broker of the key, in the order of their ids. With an administrator's key it
// returns the files of the given broker, or of all brokers if the name is empty. It stops at the first error.
func (c *Client) Files(ctx context.Context, broker string) iter.Seq2[File, error] {
	return listed[File](ctx, c, "/get", broker)
}
