package httpserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Certificate is a server's certificate in files; the tags make it flags. The
// zero value is none.
type Certificate struct {
	Cert string `placeholder:"FILE" help:"Certificate, with those that signed it, in PEM; with a key, the server speaks HTTPS and HTTP/2. A file that changes is read anew."`
	Key  string `placeholder:"FILE" help:"Key of the certificate, in PEM."`
}

// lookEvery is how often, at most, a certificate's files are looked at.
const lookEvery = time.Second

// Config returns what a listener needs to use the certificate, nil for none.
func (c Certificate) Config(log *slog.Logger) (*tls.Config, error) {
	if c.Cert == "" && c.Key == "" {
		return nil, nil
	}
	if c.Cert == "" || c.Key == "" {
		return nil, errors.New("a certificate and its key belong together")
	}
	k := &keptCertificate{files: c, log: log}
	if err := k.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: k.get}, nil
}

// MeasureCertificate tells a meter when the certificate that Config has made
// config of expires, or one of those that signed it, if that is before. Of a nil
// config it tells nothing.
func MeasureCertificate(meter metric.Meter, config *tls.Config) error {
	if config == nil {
		return nil
	}
	_, err := meter.Float64ObservableGauge("registry.tls.expires", metric.WithUnit("s"),
		metric.WithDescription("When the first of the certificates that this process shows expires, since the epoch."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			shown, err := config.GetCertificate(nil)
			if err != nil {
				return err
			}
			var first time.Time
			for _, der := range shown.Certificate {
				c, err := x509.ParseCertificate(der)
				if err != nil {
					return fmt.Errorf("read certificate: %w", err)
				}
				if first.IsZero() || c.NotAfter.Before(first) {
					first = c.NotAfter
				}
			}
			o.Observe(float64(first.Unix()))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metric: %w", err)
	}
	return nil
}

// keptCertificate reads a certificate again when its files have changed, and
// keeps the one it has when that fails.
type keptCertificate struct {
	files Certificate
	log   *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	modified [2]time.Time
	looked   time.Time
}

func (k *keptCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.looked) >= lookEvery {
		k.looked = now
		if times, err := k.times(); err != nil || times != k.modified {
			if err := k.load(); err != nil {
				k.log.Error("the certificate cannot be read anew; the one before is kept", "error", err)
			} else {
				k.log.Info("the certificate was read anew")
			}
		}
	}
	return k.current, nil
}

func (k *keptCertificate) times() (modified [2]time.Time, err error) {
	for i, name := range []string{k.files.Cert, k.files.Key} {
		info, err := os.Stat(name)
		if err != nil {
			return modified, err
		}
		modified[i] = info.ModTime()
	}
	return modified, nil
}

func (k *keptCertificate) load() error {
	times, err := k.times()
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	read, err := tls.LoadX509KeyPair(k.files.Cert, k.files.Key)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	k.current, k.modified, k.looked = &read, times, time.Now()
	return nil
}
