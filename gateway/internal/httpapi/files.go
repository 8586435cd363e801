package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

const (
	brokerUploads = 16 // uploads that a broker may have under way at the same time
	readersPart   = 4  // one client may have 1/4 of the places of the file service for its readings of files
)

// routeFiles adds the routes of files, which the file service answers. Without a file service, it adds none.
func (a *API) routeFiles(engine *gin.Engine) {
	if a.config.Files == nil {
		return
	}
	for _, r := range routes.Files() {
		of := route{class: r.Class, key: r.Key, answer: a.forwardTo(a.config.Files, samePath), places: a.places.files}
		of.form = r.Class == routes.Write
		switch {
		case strings.HasPrefix(r.Pattern, routes.UploadFile):
			of.share, of.answer = a.shareUploads, a.forwardUpload
		case r.Method == http.MethodDelete:
			of.answer = a.removeFile
		case r.Pattern == routes.Archive && r.Method == http.MethodGet:
			of.share = a.share(a.archives, a.nameOf, "You have %d archive under way; finish it first.")
		case routes.IsTransfer(r.Method, r.Pattern):
			of.share = a.share(a.readings, a.nameOf, "You have %d readings of files under way; finish one first.")
		}
		if a.isMirror() && needsOrigin(r) {
			of = route{class: routes.Read, answer: a.toOrigin}
		}
		engine.Handle(r.Method, r.Pattern, a.pipeline(of))
	}
}

// isTransfer reports whether a request transfers a file.
func (a *API) isTransfer(c *gin.Context) bool {
	method, path := c.Request.Method, c.FullPath()
	return routes.IsTransfer(method, path) || a.config.Files != nil && takesForms(method, path) && isForm(c.Request)
}

// shareUploads refuses an upload if its broker has too many under way.
func (a *API) shareUploads(next handler) handler {
	broker := func(c *gin.Context) string { return caller(c).Broker }
	return a.share(a.uploads, broker, "You have %d uploads under way; finish one first.")(next)
}

// share refuses a request that lasts long if its client has as many under way as it may. The argument `says` is the
// text of the refusal, with the number. The request must have passed identify.
func (a *API) share(shares *concurrency.Shares, nameOf func(*gin.Context) string, says string) step {
	return func(next handler) handler {
		return func(c *gin.Context) error {
			client := nameOf(c)
			switch shares.Enter(client) {
			case concurrency.ShareUsed:
				f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit", says, shares.Each())
				f.RetryAfter = time.Second
				return f
			case concurrency.AllUsed:
				return a.crowded(c)
			}
			defer shares.Leave(client)
			return next(c)
		}
	}
}

// forwardUpload forwards the upload of a file to the file service.
func (a *API) forwardUpload(c *gin.Context) error { return a.sendUpload(c, c.Writer, samePath(c)) }

// sendUpload forwards the body of an upload while the body arrives, and copies the answer to w. If the body breaks
// off, sendUpload returns an error that says so, because the file service may give no answer.
func (a *API) sendUpload(c *gin.Context, w http.ResponseWriter, path string) error {
	r := c.Request
	body := &upload{ReadCloser: r.Body, from: httpserver.NewReceiver(c.Writer, r.Body, httpserver.UploadPace)}
	ctx, of := r.Context(), client(c) // the body may be read in another goroutine, which must not use c
	if err := a.limitUpload(ctx, of, c.Writer.Header(), max(0, r.ContentLength)); err != nil {
		return err
	}
	if r.ContentLength < 0 {
		body.limit = func(n int64) error { return a.limitUpload(ctx, of, http.Header{}, n) }
	}
	r.Body = body
	err := a.send(c, a.config.Files, w, path)
	switch {
	case err == nil || body.failed == nil:
		return err
	case fault.KindOf(body.failed) != fault.Internal:
		return body.failed
	case errors.Is(body.failed, os.ErrDeadlineExceeded):
		const says = "The body did not arrive in time."
		return fmt.Errorf("%w: %w: %w", fault.New(fault.Invalid, fault.Body, "file", says), body.failed, err)
	default:
		const says = "The body ended before it was complete."
		return fmt.Errorf("%w: %w", fault.New(fault.Invalid, fault.Body, "file", says), err)
	}
}

// removeFile answers a request that takes a file down. The audit log gets an entry before the client gets the
// answer. A client that gets no answer repeats the request.
func (a *API) removeFile(c *gin.Context) error {
	from, answer := c.GetHeader(httpserver.ClientHeader), &kept{header: http.Header{}}
	if err := a.send(c, a.config.Files, answer, samePath(c)); err != nil {
		return err
	}
	if answer.status != http.StatusOK {
		return faulthttp.Read(answer.answer())
	}
	var removed struct {
		Data struct {
			ID, SHA256, Reason string
			Size               int64
			RemovedBy          string `json:"removed_by"`
		}
	}
	if err := json.Unmarshal(answer.body.Bytes(), &removed); err != nil {
		return fmt.Errorf("read the answer of the file service: %w", err)
	}
	// If another key has removed the file before, the removal is not noted again.
	if by, f := caller(c), removed.Data; f.RemovedBy == by.KeyID {
		err := a.config.Auth.NoteRemoval(c.Request.Context(), authapi.NoteRemovalRequest{
			File: f.ID, Reason: f.Reason, SHA256: f.SHA256, Size: f.Size, Broker: by.Broker, KeyID: by.KeyID, From: from,
		})
		if err != nil {
			return err
		}
	}
	maps.Copy(c.Writer.Header(), answer.header)
	c.Writer.WriteHeader(answer.status)
	_, err := c.Writer.Write(answer.body.Bytes())
	return err
}

// limitUpload counts bytes of an upload. It sets fields of the header in the argument `answer`; no other goroutine
// may use this header meanwhile.
func (a *API) limitUpload(ctx context.Context, of ratelimit.Client, answer http.Header, size int64) error {
	r := ratelimit.Request{Class: ratelimit.FileBytes, Client: of, Body: size}
	err := a.config.Limits.Admit(ctx, answer, r)
	if err != nil {
		a.config.Limits.Count(routes.Write, err)
	}
	return err
}

// upload is the body of an upload. It notes why reading has failed.
type upload struct {
	io.ReadCloser
	from      io.Reader
	limit     func(n int64) error // counts n more bytes; nil: the bytes were counted before
	uncounted int64
	failed    error
}

// countEvery is how many bytes of an upload of unknown length are read before they are counted.
const countEvery = 1 << 20

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.uncounted += int64(n)
	if u.limit != nil && (u.uncounted >= countEvery || err == io.EOF) {
		if refusal := u.limit(u.uncounted); refusal != nil {
			err = refusal
		}
		u.uncounted = 0
	}
	if err != nil && err != io.EOF {
		u.failed = err
	}
	return n, err
}

// Unwrap returns the body of the request, so that the server reads the rest of a refused body after the answer.
func (u *upload) Unwrap() io.ReadCloser { return u.ReadCloser }

// refuseForeign refuses a form from a page of another origin, unless the operator allows this origin. A browser
// sends a form without a preflight, and with the API key that it keeps (docs/files.md, D9). Without this check, any
// page could use this key. Programs other than browsers send neither Origin nor Sec-Fetch-Site.
func (a *API) refuseForeign(c *gin.Context) error {
	origin, site := c.GetHeader("Origin"), c.GetHeader("Sec-Fetch-Site")
	isOwn := origin == a.baseURL(c.Request) || origin == "" && (site == "" || site == "same-origin" || site == "none")
	if isOwn || slices.Contains(a.config.Settings.CORSOrigins, origin) && origin != "" {
		return nil
	}
	return fault.New(fault.Forbidden, fault.Header, "Origin",
		"Web pages of other origins may not send files. The operator can name your origin in --cors-origins.")
}
