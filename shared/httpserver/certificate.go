package httpserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/errs"
	"asset-registry/shared/telemetry"
)

// Certificate names the files of a server's certificate. Its tags make flags.
// The zero value is no certificate.
type Certificate struct {
	Cert string `placeholder:"FILE" help:"Certificate chain (PEM), for HTTPS and HTTP/2. A changed file is loaded again."`
	Key  string `placeholder:"FILE" help:"Private key of the certificate (PEM)."`

	BaseURL string `kong:"-"` // the public address; "": the certificate may have any host
}

// checkFilesEvery is the least time between two checks whether a certificate's files have changed.
const checkFilesEvery = time.Second

// Config returns a listener's TLS configuration, or nil without a certificate.
// The certificate is loaded again when its files change.
func (c Certificate) Config(log *slog.Logger) (*tls.Config, error) {
	r, err := c.open(log)
	if r == nil || err != nil {
		return nil, err
	}
	for _, err := range c.look(r.current.Leaf, time.Now()) {
		log.Warn("clients may refuse the certificate", "error", err)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: r.get,
	}, nil
}

// open loads the certificate. Without one it returns nil.
func (c Certificate) open(log *slog.Logger) (*certReloader, error) {
	if c.Cert == "" && c.Key == "" {
		return nil, nil
	}
	if c.Cert == "" || c.Key == "" {
		return nil, errors.New("--tls-cert and --tls-key: give both the certificate and its key, or neither")
	}
	r := &certReloader{files: c, log: log}
	return r, r.load()
}

// MeasureCertificate registers a metric: the time when the first certificate of a chain expires. The value is 0 as long
// as there is no certificate. The parameter `config` comes from Certificate.Config, or has a GetCertificate that
// accepts nil. With a nil config there is no metric.
func MeasureCertificate(meter metric.Meter, config *tls.Config) {
	if config == nil {
		return
	}
	telemetry.Must(meter.Float64ObservableGauge("registry.tls.expires.timestamp", metric.WithUnit("s"),
		metric.WithDescription("Unix time when the first certificate of the process's chain expires; 0: there is none yet."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			shown, err := config.GetCertificate(nil)
			if err != nil {
				o.Observe(0)
				return nil
			}
			first, err := firstExpiry(shown)
			if err != nil {
				return err
			}
			o.Observe(float64(first.Unix()))
			return nil
		})))
}

// firstExpiry returns the time when the first of a chain's certificates expires.
func firstExpiry(chain *tls.Certificate) (first time.Time, err error) {
	for _, der := range chain.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return time.Time{}, fmt.Errorf("read certificate: %w", err)
		}
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first, nil
}

// certReloader loads a certificate again when its files change. If that fails, or if a good certificate would be
// replaced by one that is not, it keeps the old certificate, and looks again while the files do not fit.
type certReloader struct {
	files Certificate
	log   *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	modified [2]time.Time // when Cert and Key were changed
	refused  [2]time.Time // times of the files that could not be used; they are told once
	checked  time.Time    // when the files were last checked for changes
}

func (r *certReloader) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.checked) < checkFilesEvery {
		return r.current, nil
	}
	r.checked = now
	times, err := r.times()
	if err == nil && times == r.modified {
		return r.current, nil
	}
	if err := r.load(); err != nil {
		if times != r.refused {
			r.log.Error("the changed certificate cannot be used; the old one stays in use", "error", err)
		}
		r.refused = times
	} else {
		r.log.Info("the changed certificate is in use")
	}
	return r.current, nil
}

func (r *certReloader) times() (modified [2]time.Time, err error) {
	for i, name := range []string{r.files.Cert, r.files.Key} {
		info, err := os.Stat(name)
		if err != nil {
			return modified, err
		}
		modified[i] = info.ModTime()
	}
	return modified, nil
}

func (r *certReloader) load() error {
	times, err := r.times()
	if err != nil {
		return fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	read, err := tls.LoadX509KeyPair(r.files.Cert, r.files.Key)
	if err != nil {
		const text = "--tls-cert and --tls-key: %s and %s must be a certificate and its key in PEM: %w"
		return fmt.Errorf(text, r.files.Cert, r.files.Key, err)
	}
	if err := r.files.mayReplace(r.current, &read, time.Now()); err != nil {
		return err
	}
	r.current, r.modified, r.checked = &read, times, time.Now()
	return nil
}

// Check returns an error for a certificate that cannot be used, and prints warnings.
func (c Certificate) Check(warnings io.Writer) error {
	r, err := c.open(slog.New(slog.DiscardHandler))
	if r == nil || err != nil {
		return err
	}
	for _, w := range c.look(r.current.Leaf, time.Now()) {
		fmt.Fprintln(warnings, "warning:", w)
	}
	return nil
}

// look returns for which reasons clients may refuse a certificate at a time. A server starts with it nevertheless.
func (c Certificate) look(leaf *x509.Certificate, now time.Time) (warnings []error) {
	for _, err := range []error{c.dates(leaf, now), c.names(leaf)} {
		if err != nil {
			warnings = append(warnings, err)
		}
	}
	if u, err := url.Parse(c.BaseURL); err == nil && u.Scheme == "http" {
		warnings = append(warnings, errors.New("--base-url begins with http://, but the listener has a certificate: "+
			"write https://, or name no certificate"))
	}
	return warnings
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
