// Command searchsvc runs the search service and the pages for people as one process.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"asset-registry/searchsvc"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/daemon"
	"asset-registry/shared/private"
	"asset-registry/shared/probe"
	"asset-registry/shared/telemetry"
)

// settings has the settings of the command. They come from flags, environment variables or a file.
type settings struct {
	daemon.Process

	Addr    string `default:"127.0.0.1:8083" help:"Address to listen on."`
	Service flags  `embed:""`
}

// flags are the settings of the service, without the method Validate, which kong would call before the secret is read.
type flags searchsvc.Config

// HelpTexts implements config.HelpTexts.
func (flags) HelpTexts() map[string]string {
	return map[string]string{
		"of": "Address of the registry, or of a mirror of it. No key is needed.",
		"public_key": "Public key of the public log, with which browsers check records. May be repeated. " +
			"Without one, pages name the commands that check a record.",
	}
}

func main() { command.Main("searchsvc", run, nil) }

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "health" {
		return probe.Ready(ctx, args[1])
	}
	s := settings{Process: daemon.Process{Name: "searchsvc"}}
	const help = "The search service of the asset registry. " +
		"\"searchsvc health URL\" asks the /readyz at URL whether a service is ready. " +
		"\"searchsvc check [FILE] [flags]\" checks settings, and prints what is in force and where it came from."
	if len(args) > 0 && args[0] == "check" {
		return config.Check(&s, "searchsvc", "SEARCHSVC", "", args[1:], os.Stdout)
	}
	if _, err := config.Parse(&s, "searchsvc", help, "SEARCHSVC", args); err != nil {
		return err
	}
	s.Budget, s.Places = s.Service.Memory, []string{s.Service.Dir}
	open := func(log *slog.Logger, t *telemetry.Telemetry) (daemon.Service, error) {
		s.Service.Log, s.Service.Telemetry = log, t
		return searchsvc.New(ctx, searchsvc.Config(s.Service))
	}
	return daemon.Run(ctx, s.Addr, s.Process, open)
}

// Check implements config.Checker.
func (s settings) Check(warnings io.Writer) error {
	s.Service.Log = slog.New(slog.DiscardHandler)
	return errors.Join(searchsvc.Config(s.Service).Validate(), private.Print(warnings, s.Service.Dir))
}
