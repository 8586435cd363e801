package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// options are what a client may ask of an answer (contract, section 5.1), and
// what a creation adds to it.
type options struct {
	pretty   bool          // indented by four blanks
	callback string        // wrapped into a call of this function
	access   record.Object // the access block
}

// callbackName is what may be called: a JavaScript name, dotted at most, so
// that nobody has us serve a script of their own.
var callbackName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$.]{0,99}$`)

// parseQuery returns the parameters of a reading request, and of them what
// says how the answer is to look. An empty parameter counts as absent.
func parseQuery(raw string) (url.Values, options, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, options{}, fault.New(fault.Invalid, fault.Query, "query", "The query string is malformed: %s.", err)
	}
	for name, values := range query {
		if !utf8.ValidString(name) || !utf8.ValidString(values[0]) {
			return nil, options{}, fault.New(fault.Invalid, fault.Query, "query", "could not decode params: the query string is not valid UTF-8")
		}
	}
	o := options{pretty: query.Get("opt_pretty") != "", callback: query.Get("opt_jsonp")}
	if o.callback != "" && !callbackName.MatchString(o.callback) {
		return nil, options{}, fault.New(fault.Invalid, fault.Query, "opt_jsonp", "This must be the name of a JavaScript function.")
	}
	return query, o, nil
}

// write answers with a body, as the client wants it to look.
func (a *API) write(c *gin.Context, status int, body []byte, o options) error {
	if o.pretty {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "    "); err != nil {
			return fmt.Errorf("indent answer: %w", err)
		}
		indented.WriteByte('\n') // a person reads this, in a terminal
		body = indented.Bytes()
	}
	contentType := "application/json"
	if o.callback != "" {
		contentType = "application/javascript"
		body = fmt.Appendf(nil, "%s(%s);", o.callback, body)
	}
	h := c.Writer.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if c.Request.Method == http.MethodHead {
		c.Status(status)
		c.Writer.WriteHeaderNow()
		return nil
	}
	return a.send(c, status, body)
}
