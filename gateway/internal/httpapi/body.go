package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/routes"
)

// needJSON refuses a body whose content type is not JSON. It also refuses a compressed body, because a small
// one can unpack to any size.
func needJSON(c *gin.Context) error {
	refusal := &fault.Error{Kind: fault.UnsupportedMedia}
	if !isJSON(c.GetHeader("Content-Type")) {
		refusal.Details = append(refusal.Details, fault.Detail{Location: fault.Header, Name: "Content-Type",
			Description: "Content-Type header should be one of ['application/json']"})
	}
	coding := strings.Join(c.Request.Header.Values("Content-Encoding"), ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		c.Header("Accept-Encoding", "identity") // as RFC 9110, 15.5.16, requires
		refusal.Details = append(refusal.Details, fault.Detail{Location: fault.Header, Name: "Content-Encoding",
			Description: "Content-Encoding is not accepted: send the body uncompressed, without this header."})
	}
	if len(refusal.Details) > 0 {
		return refusal
	}
	return nil
}

// isJSON reports whether a content type is application/json, with any parameters.
func isJSON(contentType string) bool {
	if contentType == "application/json" { // the usual form, without the cost of parsing
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// declaredSize returns how many bytes of body the gateway will read. It is 0 if the gateway refuses or ignores
// the body without reading it, and -1 if the headers do not say how long the body is. The request must have
// passed identify.
func (a *API) declaredSize(c *gin.Context) int64 {
	r := c.Request
	unread := r.Method == http.MethodDelete || r.ContentLength > a.config.MaxBody
	if unread || caller(c).IsAnonymous() || needJSON(c) != nil {
		return 0
	}
	return r.ContentLength
}

// reserveBody reserves room for the body until the request is answered. If there is no room, the rate limits must
// not count the request. So reserveBody comes before the rate limits.
func (a *API) reserveBody(next handler) handler {
	return func(c *gin.Context) error {
		size := a.declaredSize(c)
		if size < 0 {
			size = a.config.MaxBody
		}
		if size == 0 {
			return next(c)
		}
		release, err := a.room.hold(caller(c), size)
		if fault.KindOf(err) == fault.TooMany {
			a.config.Limits.Count(routes.Write, err)
		}
		if err != nil {
			return err
		}
		defer release()
		return next(c)
	}
}

// readBody reads the whole body before the request goes to the asset service, so that a slow client does not
// occupy the asset service. Meanwhile the request has no place, so slow bodies leave the places to others. The request
// must have passed reserveBody.
func (a *API) readBody(c *gin.Context) error {
	v := visitorOf(c)
	v.leave()
	if err := a.receive(c); err != nil {
		return err
	}
	if !v.enter() {
		return a.crowded(c)
	}
	return nil
}

func (a *API) receive(c *gin.Context) error {
	r := c.Request
	if end, ok := r.Context().Deadline(); ok && r.Body != http.NoBody {
		_ = http.NewResponseController(c.Writer).SetReadDeadline(end) // fails only without a connection, as in tests
	}
	tooLarge := fault.New(fault.TooLarge, fault.Body, "data", "The body has more than %d bytes.", a.config.MaxBody)
	if r.ContentLength > a.config.MaxBody {
		return tooLarge
	}
	body, err := readAll(http.MaxBytesReader(c.Writer, r.Body, a.config.MaxBody), r.ContentLength)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.New(fault.Invalid, fault.Body, "data", "The body did not arrive in time.")
	}
	if err != nil {
		return fault.New(fault.Invalid, fault.Body, "data", "The body ended before it was complete.")
	}
	if r.ContentLength < 0 {
		if err := a.limitBody(c, int64(len(body))); err != nil {
			return err
		}
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return nil
}

// readAll reads a body of size bytes, or of unknown length if size is -1. It fails if the body is shorter than
// size.
func readAll(body io.Reader, size int64) ([]byte, error) {
	if size < 0 {
		return io.ReadAll(body)
	}
	whole := make([]byte, size)
	_, err := io.ReadFull(body, whole)
	return whole, err
}

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

func (k *kept) Header() http.Header { return k.header }

func (k *kept) WriteHeader(status int) {
	k.status = cmp.Or(k.status, status)
}

func (k *kept) Write(p []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	if k.body.Len()+len(p) > mostKept {
		return 0, fmt.Errorf("the answer of the file service has more than %d bytes", mostKept)
	}
	return k.body.Write(p)
}

func (k *kept) Flush() {}

// answer returns the kept answer as an *http.Response.
func (k *kept) answer() *http.Response {
	return &http.Response{StatusCode: k.status, Header: k.header, Body: io.NopCloser(&k.body)}
}
