// Package httpclient makes the HTTP clients of the product.
package httpclient

import "net/http"

// New returns a client that follows no redirect. A redirect leads to a server that the operator has not named, perhaps
// to one inside the operator's network. The client returns the answer with the redirect. No caller accepts the status
// of this answer. A nil transport is http.DefaultTransport.
func New(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
