package httpapi

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/faulthttp"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/routes"
)

// orForm returns the handler of a route with which a client adds a document. The handler takes forms that contain
// the file of the document (docs/files.md, "Forms"). It passes all other requests to the given handler (next).
func (a *API) orForm(v routes.Version, r routes.Route, next gin.HandlerFunc) gin.HandlerFunc {
	if a.config.Files == nil || a.isMirror() || !takesForms(r.Method, r.Pattern) {
		return next
	}
	form := a.pipeline(route{
		version: v, class: r.Class, key: r.Key, form: true, share: a.shareUploads, answer: a.addForm(v),
		places: a.places.files,
	})
	return func(c *gin.Context) {
		if isForm(c.Request) {
			form(c)
			return
		}
		next(c)
	}
}

// takesForms reports whether requests with this method and route add a document, or a version of a document.
func takesForms(method, pattern string) bool {
	return method == http.MethodPost && strings.HasSuffix(pattern, "/"+routes.Documents) ||
		method == http.MethodPut && strings.Contains(pattern, "/"+routes.Documents+"/")
}

// isForm reports whether the body of a request is a form that may have a file.
func isForm(r *http.Request) bool {
	_, isForm := filesapi.FormBoundary(r.Header)
	return isForm
}

// addForm returns the handler of a form. It first stores the file. Then it sends the asset service a document
// in JSON that refers to the file. If the asset service refuses the document, nothing refers to the file, and
// the file is removed after a day.
func (a *API) addForm(v routes.Version) handler {
	return func(c *gin.Context) error {
		path, stored, method := upstreamPath(c, v), &kept{header: http.Header{}}, c.Request.Method
		c.Request.Method = http.MethodPost // the file is always sent with POST, even for a version of a document
		if err := a.sendUpload(c, stored, filesapi.FormPath); err != nil {
			return err
		}
		if stored.status != http.StatusOK {
			return faulthttp.Read(stored.answer())
		}
		return within(c, a.config.Timeout, func(c *gin.Context) error {
			r, document := c.Request, stored.body.Bytes()
			r.Method = method
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(document)), int64(len(document)), nil
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(document)), nil }
			r.Header.Set("Content-Type", "application/json")
			return a.send(c, a.config.Assets, c.Writer, path)
		})
	}
}

// mostKept is the size in bytes of the largest answer that a value of type kept accepts. The answers of the file
// service are far smaller, because it limits the fields of a form.
const mostKept = 4 << 20

// kept is an http.ResponseWriter that keeps a small answer.
type kept struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(status int) {
	k.status = cmp.Or(k.status, status)
}

// Write implements http.ResponseWriter.
func (k *kept) Write(p []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	if k.body.Len()+len(p) > mostKept {
		return 0, fmt.Errorf("the answer of the file service has more than %d bytes", mostKept)
	}
	return k.body.Write(p)
}

// Flush implements http.Flusher.
func (k *kept) Flush() {}

// answer returns the kept answer as an *http.Response.
func (k *kept) answer() *http.Response {
	return &http.Response{StatusCode: k.status, Header: k.header, Body: io.NopCloser(&k.body)}
}
