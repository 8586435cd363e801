package httpapi

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/answers"
	"asset-registry/shared/routes"
)

// recall answers a plain read of an asset from memory. If the memory has no answer, recall gets the answer from
// the handler in the argument `next`, and offers it to the memory.
func (a *API) recall(v routes.Version, next handler) handler {
	return func(c *gin.Context) error {
		if a.config.Answers == nil || !isPlain(c.Request) {
			return next(c)
		}
		id, form := c.Param("id"), answers.Form{Version: v.Target, Full: !caller(c).IsAnonymous()}
		if kept := a.config.Answers.Find(id, form); kept != nil && isAbout(c.Request, kept.ETag) {
			answerFrom(c, kept)
			return nil
		}
		if c.Request.Method == http.MethodHead {
			return next(c)
		}
		reading := a.config.Answers.Begin(id)
		if reading == nil {
			return next(c)
		}
		var answer *answers.Answer
		defer func() { reading.End(answer) }() // deferred, so that the read ends even after a panic
		copied := &copier{ResponseWriter: c.Writer}
		c.Writer = copied
		err := next(c)
		answer = copied.answer(form)
		return err
	}
}

// isPlain reports whether the answer to a request depends only on the asset, the version, and whether the
// caller has an API key.
func isPlain(r *http.Request) bool {
	return r.URL.RawQuery == "" && len(r.Header["If-Match"]) == 0
}

// isAbout reports whether an answer with this tag suits a request: the request has no condition, or only one
// that names the tag.
func isAbout(r *http.Request, tag string) bool {
	tags := r.Header["If-None-Match"]
	return len(tags) == 0 || len(tags) == 1 && tags[0] == tag
}

// answerFrom sends an answer from memory, or a 304 if the client already has it.
func answerFrom(c *gin.Context, a *answers.Answer) {
	h := c.Writer.Header()
	values := [...]string{a.CacheControl, a.ETag, a.ContentType, strconv.Itoa(len(a.Body))}
	h["Cache-Control"], h["Etag"] = values[0:1:1], values[1:2:2]
	if len(c.Request.Header["If-None-Match"]) > 0 { // isAbout has checked that the header names this answer's tag
		c.Status(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
		return
	}
	h["Content-Type"], h["Content-Length"] = values[2:3:3], values[3:4:4]
	c.Status(http.StatusOK)
	if c.Request.Method == http.MethodHead {
		c.Writer.WriteHeaderNow()
		return
	}
	if _, err := c.Writer.Write(a.Body); err != nil {
		_ = c.Error(err)            // for the log
		panic(http.ErrAbortHandler) // ends the connection
	}
}

// copier copies an answer on its way to the client, if the answer can be kept.
type copier struct {
	gin.ResponseWriter
	begun  bool
	length int
	copied *answers.Answer // nil: the answer cannot be kept
}

func (w *copier) Write(p []byte) (int, error) {
	if !w.begun { // the headers are copied now, because the edge changes them if it compresses the answer
		w.begun, w.copied = true, w.begin()
	}
	if a := w.copied; a != nil {
		a.Body = append(a.Body, p...)
		if len(a.Body) > w.length {
			w.copied = nil
		}
	}
	return w.ResponseWriter.Write(p)
}

// begin returns the answer without its body, or nil if the answer cannot be kept.
func (w *copier) begin() *answers.Answer {
	h := w.Header()
	length, err := strconv.Atoi(h.Get("Content-Length"))
	if err != nil || length > answers.MaxBody || w.Status() != http.StatusOK || h.Get("ETag") == "" {
		return nil
	}
	w.length = length
	return &answers.Answer{
		ContentType: h.Get("Content-Type"), CacheControl: h.Get("Cache-Control"), ETag: h.Get("ETag"),
		Body: make([]byte, 0, length),
	}
}

func (w *copier) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *copier) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answer returns the whole answer, with its form, or nil if the answer cannot be kept.
func (w *copier) answer(f answers.Form) *answers.Answer {
	if w.copied == nil || len(w.copied.Body) < w.length {
		return nil
	}
	w.copied.Form = f
	return w.copied
}
