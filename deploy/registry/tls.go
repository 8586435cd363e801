package registry

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/net/netutil"

	"asset-registry/deploy/registry/certificate"
	"asset-registry/shared/closing"
	"asset-registry/shared/errs"
	"asset-registry/shared/httpserver"
)

// validateACME reports everything that is wrong with the settings for ACME.
func (c Config) validateACME() error {
	_, badHost := certificate.Host(c.BaseURL)
	return errors.Join(c.Authority.Validate(), badHost,
		errs.If(c.TLS.Cert != "" || c.TLS.Key != "", "--acme and --tls-cert exclude each other"),
		errs.If(c.PlainAddr != "", "--acme and --plain-addr exclude each other: use --acme-addr"),
	)
}

// maxPlain is the maximum number of simultaneous connections of plain HTTP. With this limit, a flood of them cannot
// use up the descriptors that the public listener needs.
const maxPlain = 512

// keepCertificate keeps the certificate of the host valid, and answers plain HTTP, until the list ends both. It
// returns the manager of the certificate.
func (c Config) keepCertificate(
	ctx context.Context, plain net.Listener, log *slog.Logger, meter metric.Meter, opened *closing.List,
) (*certificate.Manager, error) {
	host, err := certificate.Host(c.BaseURL)
	if err != nil {
		return nil, err
	}
	m := certificate.Open(c.Authority, host, filepath.Join(c.Data, certificateDirectory), log, meter)
	opened.Go(context.WithoutCancel(ctx), m.Keep)
	c.servePlain(ctx, plain, m, log, opened)
	return m, nil
}

// servePlain answers plain HTTP until the list is closed: it redirects to the base URL, and answers the challenges of
// the manager.
func (c Config) servePlain(
	ctx context.Context, plain net.Listener, m *certificate.Manager, log *slog.Logger, opened *closing.List,
) {
	opened.Serve(context.WithoutCancel(ctx), func(ctx context.Context) error {
		bounded := netutil.LimitListener(plain, maxPlain)
		return httpserver.Serve(ctx, bounded, m.Plain(c.BaseURL), log, httpserver.ServeOptions{})
	})
}
