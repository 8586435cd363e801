package httpserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"

	"asset-registry/shared/errs"
)

// Check returns the faults of the certificate and of its files, and prints warnings.
func (c Certificate) Check(warnings io.Writer) error {
	r, err := c.open(slog.New(slog.DiscardHandler))
	if r == nil || err != nil {
		return err
	}
	faults, warned := c.look(r.current.Leaf, time.Now())
	for _, w := range warned {
		fmt.Fprintf(warnings, "Warning: %v\n", w)
	}
	return errors.Join(faults...)
}

// look returns what is wrong with a certificate at a time. A certificate without the host of the base URL is a fault
// only where clients reach this listener by that name, and no proxy has a certificate of its own in front.
func (c Certificate) look(leaf *x509.Certificate, now time.Time) (faults, warnings []error) {
	if err := c.dates(leaf, now); err != nil {
		faults = append(faults, err)
	}
	u, err := url.Parse(c.BaseURL)
	if err == nil && u.Scheme == "http" {
		faults = append(faults, errors.New("--base-url begins with http://, but the listener has a certificate: "+
			"write https://, or name no certificate"))
	}
	if err := c.names(leaf); err != nil && c.Proxied {
		warnings = append(warnings, err)
	} else if err != nil {
		faults = append(faults, err)
	}
	return faults, warnings
}

// dates returns an error for a certificate that has expired or is not yet valid.
func (c Certificate) dates(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate %s has expired at %s", c.Cert, leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate %s is not valid before %s", c.Cert, leaf.NotBefore.Format(time.RFC3339))
	}
	return nil
}

// names returns an error for a certificate without the host of the base URL. Without a base URL there is none.
func (c Certificate) names(leaf *x509.Certificate) error {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return errs.In(leaf.VerifyHostname(u.Hostname()), "the certificate %s does not fit --base-url", c.Cert)
}

// mayReplace returns an error if a certificate is worse than the one in use. A good certificate is valid now and has
// the host. It stays if the other is not good; any other change is made, also one to an earlier end.
func (c Certificate) mayReplace(current, next *tls.Certificate, now time.Time) error {
	isGood := func(leaf *x509.Certificate) error { return errors.Join(c.dates(leaf, now), c.names(leaf)) }
	if current == nil || isGood(current.Leaf) != nil {
		return nil
	}
	return isGood(next.Leaf)
}
