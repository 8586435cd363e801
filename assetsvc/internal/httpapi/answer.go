package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

// options are the properties of an answer that depend on the request (docs/contract.md, "Requests and
// answers").
type options struct {
	pretty   bool          // the answer is indented by four blanks
	callback string        // the function that a JSONP answer calls; "": the answer is JSON
	access   record.Object // the access block of a creation or a recovery
}

// parseQuery returns the parameters of a read, and the options that they set. An empty parameter counts as
// absent.
func parseQuery(raw string) (url.Values, options, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		const text = "The query string is malformed: a %% needs two hexadecimal digits, and & separates parameters."
		return nil, options{}, queryFault("query", text)
	}
	for name, values := range query {
		if !utf8.ValidString(name) || !utf8.ValidString(values[0]) {
			return nil, options{}, queryFault("query", "could not decode params: the query string is not valid UTF-8")
		}
	}
	o := options{pretty: query.Get("opt_pretty") != "", callback: query.Get("opt_jsonp")}
	return query, o, httpserver.CheckCallback(o.callback)
}

// naming returns a function that lists ignored fields in a header of the answer.
func naming(c *gin.Context) func(names []string) {
	return func(names []string) { c.Header(httpserver.IgnoredHeader, strings.Join(names, ", ")) }
}

func queryFault(name, format string, args ...any) error {
	return fault.New(fault.Invalid, fault.Query, name, format, args...)
}

// answerHead answers a HEAD without making the body, so the answer has no Content-Length.
func (o options) answerHead(c *gin.Context) {
	contentType := "application/json"
	if o.callback != "" {
		contentType, _ = httpserver.Script(o.callback, nil)
	}
	c.Header("Content-Type", contentType)
	c.Status(http.StatusOK)
}

// write sends an answer with a JSON body, printed as the options say.
func (a *API) write(c *gin.Context, status int, body []byte, o options) error {
	if o.pretty {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "    "); err != nil {
			return fmt.Errorf("indent answer: %w", err)
		}
		indented.WriteByte('\n') // so that the prompt of a terminal begins on a new line
		body = indented.Bytes()
	}
	contentType := "application/json"
	if o.callback != "" {
		contentType, body = httpserver.Script(o.callback, body)
	}
	h := c.Writer.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if c.Request.Method == http.MethodHead {
		c.Status(status)
		return nil
	}
	return a.send(c, status, body)
}
