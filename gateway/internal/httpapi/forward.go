package httpapi

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// forwardTo sends the request to a service, with the path that the function `path` returns, and copies the answer
// to the client. If the answer breaks off, forwardTo ends the client's connection.
func (a *API) forwardTo(to *proxy.Upstream, path func(*gin.Context) string) handler {
	return func(c *gin.Context) error { return a.send(c, to, c.Writer, path(c)) }
}

// send sends the request to a path of a service, and copies the answer to w.
func (a *API) send(c *gin.Context, to *proxy.Upstream, w http.ResponseWriter, path string) error {
	r := c.Request
	if isRead(r) || r.Method == http.MethodDelete { // a body has no meaning with these methods
		r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
	}
	if r.Method != http.MethodPost || !isList(c) && !strings.HasSuffix(c.FullPath(), routes.Webhooks) {
		delete(r.Header, idempotencyKey) // only creations need this header, and it makes the transport retry
	}
	seed, err := a.seed(r)
	if err != nil {
		return err
	}
	if to == a.config.Search {
		httpserver.Aside(c)
	}
	err = to.For(a.nameOf(c)).Forward(w, r, proxy.Request{
		Path:    path,
		Caller:  caller(c),
		Client:  c.GetHeader(httpserver.ClientHeader),
		BaseURL: a.baseURL(r),
		Seed:    seed,
	})
	if errors.Is(err, proxy.ErrCut) {
		_ = c.Error(err)            // for the log; gin returns its argument
		panic(http.ErrAbortHandler) // ends the connection
	}
	return err
}

// within calls the argument `next` with a request that ends after the given time. Afterwards the request has its own
// context again. By this context httpserver.Handle sees whether the client has left.
func within(c *gin.Context, most time.Duration, next handler) error {
	own := c.Request
	ctx, cancel := context.WithTimeout(own.Context(), most)
	defer cancel()
	c.Request = own.WithContext(ctx)
	defer func() { c.Request = own }()
	return next(c)
}

// samePath returns the path of the request unchanged.
func samePath(c *gin.Context) string { return c.Request.URL.Path }

// pathIn returns a function for requests in version v. The function returns the path of a request at the asset
// service.
func pathIn(v routes.Version) func(*gin.Context) string {
	return func(c *gin.Context) string { return upstreamPath(c, v) }
}

// require refuses a request that fails a check. If the asset does not exist, the answer says this instead of
// naming a wrong content type or a missing key (docs/contract.md, "Order of checks"). The gateway stores no
// assets. So before these two refusals, and only then, it asks the asset service whether the asset exists.
func (a *API) require(needed func(*gin.Context) error) step {
	return check(func(c *gin.Context) error {
		refusal := needed(c)
		kind := fault.KindOf(refusal)
		path, ok := objectPath(c)
		if !ok || kind != fault.UnsupportedMedia && kind != fault.Unauthorized {
			return refusal
		}
		ctx, cancel := context.WithTimeout(c.Request.Context(), a.config.Timeout) // an upload has no deadline
		defer cancel()
		missing := a.config.Assets.For(a.nameOf(c)).Missing(ctx, path)
		if fault.KindOf(missing) == fault.NotFound {
			return missing
		}
		return refusal
	})
}

// idempotencyKey is the header with which a client can safely repeat a creation (docs/contract.md,
// "Idempotency").
const idempotencyKey = "Idempotency-Key"

// seed returns the secret from which the asset service makes the id and the tokens of a creation that can be
// repeated. It is "" if the request has no idempotency key. Only the gateway can make the seed, because only
// the gateway sees the API key.
func (a *API) seed(r *http.Request) (string, error) {
	name := r.Header.Get(idempotencyKey)
	if name == "" {
		return "", nil
	}
	return apikey.Seeds(r.Header, name, a.config.Secrets)
}

// upstreamPath returns the path of the same resource at the asset service.
func upstreamPath(c *gin.Context, v routes.Version) string {
	return routes.Prefix(v.Target) + strings.TrimPrefix(c.Request.URL.Path, v.Prefix())
}

// baseURL returns the public address of the registry, for links in answers. If none is configured, it is the
// address in the request, or the address that a trusted proxy reports. Then the address depends on the client,
// so nothing that is stored, signed or kept for others may contain it.
func (a *API) baseURL(r *http.Request) string {
	if a.config.BaseURL != "" {
		return a.config.BaseURL
	}
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if a.config.TrustedProxies.Trust(r) {
		if sent := strings.ToLower(lastOf(r.Header["X-Forwarded-Proto"])); sent == "http" || sent == "https" {
			scheme = sent
		}
		if sent := lastOf(r.Header["X-Forwarded-Host"]); isAuthority(sent) {
			host = sent
		}
	}
	return scheme + "://" + host
}

// lastOf returns the last element of a header that is a list. The nearest proxy has added this element.
func lastOf(values []string) string {
	if len(values) == 0 {
		return ""
	}
	all := values[len(values)-1]
	return strings.TrimSpace(all[strings.LastIndexByte(all, ',')+1:])
}

// authority matches a name, an IPv4 address or an IPv6 address in brackets, with or without a port.
var authority = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)

func isAuthority(host string) bool { return authority.MatchString(host) }
