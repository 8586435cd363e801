package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
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
