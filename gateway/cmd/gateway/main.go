// Command gateway runs a gateway in its own process.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"asset-registry/gateway"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/daemon"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/probe"
	"asset-registry/shared/telemetry"
)

// settings are the command's flags, environment variables and file settings.
type settings struct {
	daemon.Process

	Addr    string `default:"127.0.0.1:8080" help:"Address to listen on."`
	Service flags  `embed:""`

	TLS httpserver.Certificate `embed:"" prefix:"tls-"`
}

const description = "The public entry of the asset registry. " +
	"\"gateway check [FILE] [flags]\" checks settings, and prints what is in force and where it came from. " +
	"\"gateway health URL\" asks a /readyz URL whether its service is ready. " +
	"On SIGHUP the gateway reads its settings file again."

// flags are the settings of the service, without the method Validate, which kong would call before the secret is read.
type flags gateway.Config

func (flags) HelpTexts() map[string]string {
	return map[string]string{
		"assets_url": "Addresses of the asset services, with commas between them. " +
			"A host name with several addresses stands for a service at each of them.",
		"auth_url":   "Addresses of the auth services, in the same form as --assets-url.",
		"search_url": "Addresses of the search services, in the same form. By default there are none, and no search.",
		"files_url":  "Addresses of the file services, in the same form. By default there are none, and no files.",
		"secret_file": "File with the secret that the services share, at least 32 bytes. " +
			"During a rotation it has two lines: the secret that signs and seals, then the other one.",
		"server_id": "Value of the cookie SERVER_ID, the same at all gateways. By default it is made from the secret; " +
			"with two secrets it is required. Change it after you restored older data: synchronisers then start over.",
		"base_url": "Public address that links start with. By default it is the address that the client used.",
		"memory": "Bytes of memory that the process may use. Parts of it bound what requests hold. " +
			"0: GOMEMLIMIT, the control group's limit or the machine's memory, whichever is least.",
	}
}

func main() {
	memory.RelaxCollector()
	command.Main("gateway", run, nil)
}

// run runs the command with the arguments args, until ctx is done.
func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "health" {
		return probe.Ready(ctx, args[1])
	}
	if len(args) > 0 && args[0] == "check" {
		s := settings{Process: daemon.Process{Name: "gateway"}}
		return config.Check(&s, "gateway", "GATEWAY", "", args[1:], os.Stdout)
	}
	s, err := parse(args)
	if err != nil {
		return err
	}
	s.Certificate, s.Reloads = s.certificate(), true
	start := func(log *slog.Logger, t *telemetry.Telemetry) (daemon.Service, error) {
		s, err := parse(args) // parsed again, because the file may have changed before a reload
		if err != nil {
			return nil, err
		}
		c, err := s.config()
		if err != nil {
			return nil, err
		}
		c.Log, c.Telemetry = log, t
		return gateway.New(ctx, c)
	}
	s.Budget, s.Refusals = s.Service.Memory, gateway.RefusalHeaders()
	return daemon.Run(ctx, s.Addr, s.Process, start)
}

// Check implements config.Checker.
func (s settings) Check(warnings io.Writer) error {
	c, unreadable := s.config()
	c.Log = slog.New(slog.DiscardHandler)
	return errors.Join(unreadable, c.Validate(), s.certificate().Check(warnings))
}

// certificate returns the operator's certificate, with what it is compared with.
func (s settings) certificate() httpserver.Certificate {
	own := s.TLS
	own.BaseURL = s.Service.BaseURL
	return own
}

func parse(args []string) (settings, error) {
	s := settings{Process: daemon.Process{Name: "gateway"}}
	_, err := config.Parse(&s, "gateway", description, "GATEWAY", args)
	return s, err
}

// config returns the gateway's configuration. If the secret file cannot be read, it returns an error.
func (s settings) config() (c gateway.Config, err error) {
	c = gateway.Config(s.Service)
	c.OwnURL, c.Limits = httpserver.OwnURL(s.TLS.Scheme(), s.Addr), c.Limits.OrDefault(false)
	c.Secrets, err = keyring.ReadSetting(c.SecretFile)
	return c, err
}
