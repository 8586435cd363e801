package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
)

// tokenHeader carries the owner token (docs/contract.md, "Owner tokens").
const tokenHeader = "X-Access-Token"

// request is the content of a write: data, access.token and options from its body, and conditions from its
// headers. Other members of the body are ignored, because clients send back what they received.
type request struct {
	data   record.Object
	token  string
	pretty bool
	guard  registry.Guard // the conditions in the headers
}

// parse reads a write with a body. Even with an error, it returns the owner token and the option `pretty`.
func (a *API) parse(c *gin.Context) (request, error) {
	r, err := a.readBody(c)
	return r.withHeaders(c, err)
}

// parseBodiless reads a write without a body.
func parseBodiless(c *gin.Context) (request, error) { return request{}.withHeaders(c, nil) }

// withHeaders adds the values of the headers and the query. The argument `err` is the error of reading the body: if
// it is not nil, withHeaders returns it. Otherwise withHeaders returns the error of the conditions. The owner
// token in the header replaces the token in the body, even if the token in the header is wrong (docs/contract.md,
// "Owner tokens").
func (r request) withHeaders(c *gin.Context, err error) (request, error) {
	if token := c.GetHeader(tokenHeader); token != "" {
		r.token = token
	}
	r.pretty = r.pretty || c.Query("opt_pretty") != ""
	if err != nil {
		return r, err
	}
	conditions, err := parseConditions(c.Request.Header)
	r.guard = conditions.guard()
	return r, err
}

// readBody reads the body, and keeps it in case the handler runs again.
func (a *API) readBody(c *gin.Context) (request, error) {
	text, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, a.maxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return request{}, bodyFault(fault.TooLarge, "data", "The body has more than %d bytes.", tooLarge.Limit)
	}
	if err != nil {
		return request{}, bodyFault(fault.Invalid, "data", "The body ended before it was complete.")
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(text))
	return parseBody(text)
}

func parseBody(text []byte) (request, error) {
	value, err := record.Parse(text)
	if err != nil {
		return request{}, err
	}
	body, _ := value.(record.Object)
	token, err := accessToken(body)
	data, ok := body.Get("data").(record.Object)
	if !ok {
		const says = `Data not available: the body must have the form {"data": {...}}.`
		return request{token: token}, bodyFault(fault.Invalid, "data", says)
	}
	if err != nil {
		return request{}, err
	}
	pretty, _ := body.Object("options").Get("pretty").(bool)
	return request{data: data, token: token, pretty: pretty}, nil
}

// accessToken returns the owner token of a body, or "" if the body has no token.
func accessToken(body record.Object) (string, error) {
	access, ok := body.Get("access").(record.Object)
	if !ok && body.Get("access") != nil {
		return "", bodyFault(fault.Invalid, "access", "This must be an object that holds the owner token.")
	}
	token, ok := access.Get("token").(string)
	if !ok && access.Get("token") != nil {
		return "", bodyFault(fault.Invalid, "access.token", "The owner token must be a string.")
	}
	return token, nil
}

func bodyFault(kind fault.Kind, name, format string, args ...any) error {
	return fault.New(kind, fault.Body, name, format, args...)
}
