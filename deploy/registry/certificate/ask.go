package certificate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/crypto/acme"

	"asset-registry/shared/httpclient"
)

// ask gets a certificate from the authority, and stores it.
func (m *Manager) ask(ctx context.Context) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	client, closeIdle, err := m.client()
	if err != nil {
		return nil, err
	}
	defer closeIdle()
	account := &acme.Account{}
	if m.authority.Contact != "" {
		account.Contact = []string{"mailto:" + m.authority.Contact}
	}
	if _, err := client.Register(ctx, account, acme.AcceptTOS); err != nil &&
		!errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, fmt.Errorf("register with the authority: %w", err)
	}
	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(m.host))
	if err != nil {
		return nil, fmt.Errorf("order a certificate: %w", err)
	}
	if len(order.Identifiers) != 1 || !strings.EqualFold(order.Identifiers[0].Value, m.host) {
		return nil, fmt.Errorf("order a certificate: the order of the authority is for %.200v", order.Identifiers)
	}
	for _, at := range order.AuthzURLs {
		if err := m.prove(ctx, client, at); err != nil {
			return nil, err
		}
	}
	if order, err = client.WaitOrder(ctx, order.URI); err != nil {
		return nil, fmt.Errorf("wait for the order: %w", err)
	}
	key, text, err := newKey()
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{DNSNames: []string{m.host}}, key)
	if err != nil {
		return nil, err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, order, request, true)
	if err != nil {
		return nil, fmt.Errorf("fetch the certificate: %w", err)
	}
	return m.stored.keep(text, chain, m.host)
}

// client returns a client for the authority, and a function that closes its connections.
func (m *Manager) client() (*acme.Client, func(), error) {
	key, err := m.stored.account()
	if err != nil {
		return nil, nil, err
	}
	roots, err := m.authority.pool()
	if err != nil {
		return nil, nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	transport.ResponseHeaderTimeout = time.Minute
	return &acme.Client{
		Key: key, DirectoryURL: m.authority.directory(), HTTPClient: httpclient.New(transport),
		UserAgent: "asset-registry", RetryBackoff: again,
	}, transport.CloseIdleConnections, nil
}

// The function `again` returns the pause before a request is repeated, or 0 to give up. A request is repeated three
// times, but not if the authority answers that there were too many requests.
func again(n int, _ *http.Request, resp *http.Response) time.Duration {
	if n > 3 || resp != nil && resp.StatusCode == http.StatusTooManyRequests {
		return 0
	}
	return time.Duration(n) * time.Second
}

// prove proves to the authority that this machine serves the host: the authority then asks the machine for an
// answer on port 80.
func (m *Manager) prove(ctx context.Context, client *acme.Client, at string) error {
	z, err := client.GetAuthorization(ctx, at)
	if err != nil {
		return fmt.Errorf("ask how to prove the host: %w", err)
	}
	if !strings.EqualFold(z.Identifier.Value, m.host) {
		return fmt.Errorf("ask how to prove the host: the authority asks about %.200q", z.Identifier.Value)
	}
	if z.Status == acme.StatusValid {
		return nil
	}
	for _, challenge := range z.Challenges {
		if challenge.Type != "http-01" {
			continue
		}
		answer, err := client.HTTP01ChallengeResponse(challenge.Token)
		if err != nil {
			return err
		}
		path := client.HTTP01ChallengePath(challenge.Token)
		m.answers.Store(path, answer)
		defer m.answers.Delete(path)
		if _, err := client.Accept(ctx, challenge); err != nil {
			return fmt.Errorf("begin the proof of the host: %w", err)
		}
		if _, err := client.WaitAuthorization(ctx, z.URI); err != nil {
			return fmt.Errorf("the authority does not see this machine at http://%s: %w", m.host, err)
		}
		return nil
	}
	return errors.New("the authority offers no proof by HTTP (http-01)")
}
