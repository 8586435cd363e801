// Package httpclient makes the HTTP clients of the product.
package httpclient

import "net/http"

// New returns a client that follows no redirect: another address is not the server that the operator has named,
// and may be one inside the operator's network. The client returns the answer with the redirect, whose status
// no caller accepts. A nil transport is http.DefaultTransport.
func New(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
