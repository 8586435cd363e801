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

// tokenHeader carries the owner token (interface document, Authentication).
const tokenHeader = "X-Access-Token"

// request is a body as the interface document has it: data, and beside it
// access.token and options. Other members beside data are ignored: clients
// send back what they were given.
type request struct {
	data   record.Object
	token  string
	pretty bool
	guard  registry.Guard // of the header
}

// parse reads the conditions of a write, and its body if it has one. The owner
// token of the header wins over that of the body, without falling back on it
// (contract, section 6.3); it is there also when the body is faulty.
func (a *API) parse(c *gin.Context, body bool) (r request, err error) {
	if body {
		r, err = a.readBody(c)
	}
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

func (a *API) readBody(c *gin.Context) (request, error) {
	text, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, a.maxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return request{}, fault.New(fault.TooLarge, fault.Body, "data", "The body has more than %d bytes.", tooLarge.Limit)
	}
	if err != nil {
		return request{}, fault.New(fault.Invalid, fault.Body, "data", "The body ended before it was complete.")
	}
	c.Request.Body = repeatable{bytes.NewReader(text)}
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
		return request{token: token}, fault.New(fault.Invalid, fault.Body, "data", "Data not available")
	}
	if err != nil {
		return request{}, err
	}
	pretty, _ := body.Object("options").Get("pretty").(bool)
	return request{data: data, token: token, pretty: pretty}, nil
}

func accessToken(body record.Object) (string, error) {
	access, ok := body.Get("access").(record.Object)
	if !ok && body.Get("access") != nil {
		return "", fault.New(fault.Invalid, fault.Body, "access", "This must be an object that holds the owner token.")
	}
	token, ok := access.Get("token").(string)
	if !ok && access.Get("token") != nil {
		return "", fault.New(fault.Invalid, fault.Body, "access.token", "The owner token must be a string.")
	}
	return token, nil
}
