package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/httpserver"
)

// get answers GET and HEAD of /get/:file.
func (a *API) get(c *gin.Context) error {
	ctx := c.Request.Context()
	f, err := a.Files.Get(ctx, c.Param("file"))
	if err != nil {
		return err
	}
	if err := a.maySee(c, f); err != nil {
		return err
	}
	if a.MayServe != nil {
		if err := a.MayServe(ctx, f); err != nil {
			return err
		}
	}
	if f.State == file.Registered {
		c.Header("Cache-Control", "private, no-store")
		c.Status(http.StatusNoContent)
		return nil
	}
	blob, err := a.Files.Open(ctx, f)
	if err != nil {
		return err
	}
	defer blob.Close()
	protect(c.Writer.Header(), f)
	return a.serve(c, f, blob, f.SHA256)
}

// picture answers GET and HEAD of /get/:file/:side with a small version of a file, as a JPEG.
func (a *API) picture(c *gin.Context) error {
	ctx := c.Request.Context()
	f, err := a.Files.Get(ctx, c.Param("file"))
	if err != nil {
		return err
	}
	if err := a.maySee(c, f); err != nil {
		return err
	}
	name := map[string]string{
		strconv.Itoa(filelink.SmallPicture): f.Small, strconv.Itoa(filelink.LargePicture): f.Large,
	}[c.Param("side")]
	blob, err := a.Files.OpenPicture(ctx, name)
	if err != nil {
		return err
	}
	defer blob.Close()
	h := c.Writer.Header()
	protect(h, file.File{Declared: jpegType, Detected: jpegType, Title: name + ".jpg"})
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // the web pages of brokers may show the picture
	return a.serve(c, f, blob, name)
}

// serve sends bytes of a file. Bytes with the same tag never differ.
func (a *API) serve(c *gin.Context, f file.File, blob file.Blob, tag string) error {
	h := c.Writer.Header()
	h.Set("Cache-Control", "private, no-store")
	if f.Named {
		h.Set("Cache-Control", "public, no-cache") // caches must ask each time, because a file may be taken down
	}
	h.Set("ETag", `"`+tag+`"`)
	w := &paced{ResponseWriter: c.Writer, sender: httpserver.NewSender(c.Writer, a.down), sent: &a.Files.Counts.Sent}
	r, err := w.oneRange(c.Request, h.Get("ETag"), blob)
	if err != nil {
		return err
	}
	http.ServeContent(w, r, "", time.Time{}, noted{blob, &w.failed})
	if w.failed != nil && c.Writer.Written() {
		_ = c.Error(w.failed)       // for the log; gin returns its argument
		panic(http.ErrAbortHandler) // ends the connection, so that no client takes a part for the whole
	}
	return w.fault(f)
}

// maySee returns a fault if the caller is not allowed to read a file. Everybody may read a file that a document has
// named. Other files need a key of their broker, or a link that is valid now.
func (a *API) maySee(c *gin.Context, f file.File) error {
	if f.Named {
		return nil
	}
	if by := httpserver.Caller(c); !by.IsAnonymous() && by.Broker == f.Broker {
		return nil
	}
	return a.Links.CheckRead(f.ID, c.Request.URL.Query(), a.Now())
}

// paced sends a file at the pace of a sender. It holds back error answers of net/http, because the API has its
// own form for errors.
type paced struct {
	http.ResponseWriter
	sender  *httpserver.Sender
	sent    *atomic.Int64 // counts the bytes of files
	refused int           // status of an error answer that was held back; 0: none
	beyond  error         // why the range cannot be sent; nil: it can
	failed  error         // why the store gave no more bytes
}

// oneRange returns a request for the same bytes that net/http understands as the registry does: it has one range within
// the file, or none. For a range that is refused, it has one beyond the file, so that net/http checks the conditions of
// the request first.
func (p *paced) oneRange(r *http.Request, tag string, blob file.Blob) (*http.Request, error) {
	if r.Header.Get("Range") == "" {
		return r, nil
	}
	size, err := file.SizeOf(blob)
	if err != nil {
		return nil, err
	}
	part, beyond := httpserver.RangeOf(r, tag, size)
	r, p.beyond = r.Clone(r.Context()), beyond
	switch {
	case beyond != nil:
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", size))
	case part.IsAsked:
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", part.First, part.First+part.Length-1))
	default:
		r.Header.Del("Range")
	}
	return r, nil
}

// WriteHeader implements http.ResponseWriter.
func (p *paced) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		p.refused = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (p *paced) Write(b []byte) (int, error) {
	if p.refused != 0 {
		return len(b), nil
	}
	n, err := p.sender.Write(b)
	p.sent.Add(int64(n))
	return n, err
}

// fault returns the fault for an answer of which nothing was sent while f was read, or nil.
func (p *paced) fault(f file.File) error {
	if p.refused == 0 && p.failed == nil {
		return nil
	}
	for _, name := range []string{
		"ETag", "Accept-Ranges", "Content-Security-Policy", "Content-Disposition", "Cross-Origin-Resource-Policy",
	} {
		p.Header().Del(name)
	}
	switch p.refused {
	case 0:
		p.Header().Del("Content-Range")
		return p.failed
	case http.StatusRequestedRangeNotSatisfiable:
		return p.beyond
	case http.StatusPreconditionFailed:
		return fault.New(fault.Precondition, fault.URL, "precondition", "The file does not have the tag of If-Match.")
	default:
		return fmt.Errorf("read file %s: got %d from net/http", f.ID, p.refused)
	}
}

// noted notes why a reader fails, because net/http does not say it.
type noted struct {
	file.Blob
	err *error
}

// Read implements io.Reader.
func (r noted) Read(p []byte) (int, error) {
	n, err := r.Blob.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		*r.err = err
	}
	return n, err
}

// Content security policies (docs/files.md, "Invariants", D6). A browser's viewer for PDF does not work under
// sandbox or default-src.
const (
	sandboxed = "sandbox; default-src 'none'"
	forPDF    = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	plainType = "application/octet-stream"
	pdfType   = "application/pdf"
	jpegType  = "image/jpeg"
)

// activeTypes are parts of the names of types that can run scripts in a browser or style a page.
var activeTypes = []string{"html", "xml", "svg", "script", "css", "wasm", "flash"}

// protect sets headers that let a browser show a file, but run nothing in it. X-Content-Type-Options is not among
// them, because all answers have it.
func protect(h http.Header, f file.File) {
	detected := mediaType(f.Detected)
	picture := filelink.PictureType(detected)
	kind, policy, shown := "attachment", sandboxed, plainType
	switch {
	case detected == pdfType:
		kind, policy, shown = "inline", forPDF, pdfType
	case picture != "" && filelink.PictureType(f.Declared) == picture:
		kind, shown = "inline", picture
	case !isActive(detected) && !isActive(f.Declared):
		shown = format(f)
	}
	h.Set("Content-Type", shown)
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Disposition", disposition(kind, f.Title))
	h.Set("Cross-Origin-Resource-Policy", "same-site")
}

// officeTypes are types with xml in their names, in which a browser runs nothing.
var officeTypes = []string{
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

func isActive(media string) bool {
	if slices.Contains(officeTypes, media) {
		return false
	}
	for _, part := range activeTypes {
		if strings.Contains(media, part) {
			return true
		}
	}
	return false
}

// format returns the type with which a file was declared, or the type of its bytes if none was declared.
func format(f file.File) string {
	if f.Declared != "" {
		return f.Declared
	}
	if detected := mediaType(f.Detected); detected != "" {
		return detected
	}
	return plainType
}

// disposition returns a Content-Disposition that has the name in ASCII and in UTF-8 (RFC 6266, RFC 8187).
func disposition(kind, name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%`, r) {
			return '_'
		}
		return r
	}, name)
	coded := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	return fmt.Sprintf(`%s; filename="%s"; filename*=UTF-8''%s`, kind, plain, coded)
}
