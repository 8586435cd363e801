// Command gateway runs the edge of the registry as a process of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"asset-registry/gateway"
	"asset-registry/shared/config"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/telemetry"
)

// settings are the command's flags, environment and config file.
type settings struct {
	httpserver.Process

	Addr           string          `default:"127.0.0.1:8080" help:"Address to listen on."`
	AssetsURL      []string        `name:"assets-url" default:"http://127.0.0.1:8081" help:"Addresses of the asset services, with commas between them; a host name with several addresses stands for all of them."`
	AuthURL        []string        `name:"auth-url" default:"http://127.0.0.1:8082" help:"Addresses of the auth services, likewise."`
	SecretFile     string          `required:"" help:"File with the secret that the services share, at least 32 bytes. While it is rotated it has two lines: the secret that signs and seals, then the other one."`
	ServerID       string          `name:"server-id" help:"Given to clients as the cookie SERVER_ID, the same at all gateways; by default made of the secret, and required while there are two. Change it when older data was restored: synchronisers then start over."`
	BaseURL        string          `name:"base-url" help:"Public address that links start with; by default the one that the client used."`
	MaxBody        int64           `default:"1048576" help:"Largest request body, in bytes."`
	Timeout        time.Duration   `default:"10s" help:"Longest time for a request."`
	Memory         int64           `help:"Bytes of memory that the process may use: parts of it bound what requests hold. 0 is GOMEMLIMIT, the control group's limit, or the machine's memory, whichever is least."`
	KeyTTL         time.Duration   `name:"key-ttl" default:"5s" help:"How long a verified API key is trusted."`
	TrustedProxies []netip.Prefix  `help:"Networks of the proxies in front whose X-Forwarded-For counts."`
	Limits         gateway.Limits  `embed:""`
	Manners        gateway.Manners `embed:""`

	TLS httpserver.Certificate `embed:"" prefix:"tls-"`
}

// gcPercent lets the heap grow to five times what is in use before it is
// collected: little is in use, and collecting half as often is a tenth of what
// the gateway costs. GOGC, if it is set, wins.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "health" {
		return httpserver.Health(ctx, args[1])
	}
	if len(args) >= 2 && args[0] == "check" {
		return check(args[1], args[2:])
	}
	s, err := parse(args)
	if err != nil {
		return err
	}
	s.Certificate, s.Reloads = s.TLS, true
	return httpserver.Run(ctx, s.Addr, s.Process, func(log *slog.Logger, t *telemetry.Telemetry) (httpserver.Service, error) {
		s, err := parse(args) // the file may have changed
		if err != nil {
			return nil, err
		}
		c, err := s.config()
		if err != nil {
			return nil, err
		}
		c.Log, c.Telemetry = log, t
		return gateway.New(ctx, c)
	})
}

// check tells everything that is wrong with a file of settings, and with flags
// beside it.
func check(file string, args []string) error {
	if strings.HasPrefix(file, "-") {
		return errors.New("usage: gateway check FILE [flags]")
	}
	s, malformed := parse(append([]string{"--config", file}, args...))
	if s.Addr == "" { // nothing was read
		return malformed
	}
	c, faults := s.config()
	c.Log = slog.New(slog.DiscardHandler)
	if s.SecretFile == "" {
		faults = nil // that it is missing is told already
	}
	if s.SecretFile == "" || faults != nil {
		c.Secrets = keyring.Ring{make([]byte, keyring.MinLength)}
	}
	_, unreadable := s.TLS.Config(c.Log)
	if err := errors.Join(malformed, faults, c.Validate(), unreadable); err != nil {
		return err
	}
	fmt.Println(file, "is good")
	return nil
}

func parse(args []string) (settings, error) {
	s := settings{Process: httpserver.Process{Name: "gateway"}}
	_, err := config.Parse(&s, "gateway", "The edge of the asset registry. With \"check FILE\" before the flags, it tells all that is wrong with a file of settings, and with \"health URL\", whether the service whose /readyz that is, is ready. SIGHUP has it read its file again.", "GATEWAY", args)
	return s, err
}

func (s settings) config() (gateway.Config, error) {
	secrets, err := keyring.Read(s.SecretFile)
	return gateway.Config{
		AssetsURLs:     s.AssetsURL,
		AuthURLs:       s.AuthURL,
		Secrets:        secrets,
		ServerID:       s.ServerID,
		BaseURL:        s.BaseURL,
		MaxBody:        s.MaxBody,
		Timeout:        s.Timeout,
		Memory:         s.Memory,
		KeyTTL:         s.KeyTTL,
		Limits:         s.Limits.OrDefault(false),
		TrustedProxies: s.TrustedProxies,
		Manners:        s.Manners,
	}, err
}
