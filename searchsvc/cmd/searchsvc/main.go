// Command searchsvc runs the search service and the pages for people as one process.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

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

	Addr      string        `default:"127.0.0.1:8083" help:"Address to listen on."`
	Of        string        `default:"http://127.0.0.1:8080" placeholder:"URL" help:"${of}"`
	Data      string        `default:"./search" help:"Directory of the index; created if it does not exist."`
	Synonyms  string        `placeholder:"FILE" help:"File of further words of one meaning; by default none."`
	CodeLists string        `placeholder:"DIR" help:"Directory of names of codes: CPV.uk.json and others."`
	Timeout   time.Duration `default:"2s" help:"Longest time for a search."`
	PublicKey []string      `sep:"none" placeholder:"KEY" help:"${public_key}"`
	MaxBehind time.Duration `default:"5m" help:"/readyz fails while the index is further behind; 0: never for that."`
	Memory    int64         `help:"Bytes that the process may use; 0: GOMEMLIMIT, the control group's or the machine's."`

	Links searchsvc.Links `embed:""`
}

// HelpTexts implements config.HelpTexts.
func (settings) HelpTexts() map[string]string {
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
		if err := config.Check(&s, "searchsvc", "SEARCHSVC", "", args[1:], os.Stdout); err != nil {
			return err
		}
		invalid := s.config(slog.New(slog.DiscardHandler), nil).Validate()
		return errors.Join(invalid, private.Print(os.Stderr, s.Data))
	}
	if _, err := config.Parse(&s, "searchsvc", help, "SEARCHSVC", args); err != nil {
		return err
	}
	s.Budget, s.Places = s.Memory, []string{s.Data}
	open := func(log *slog.Logger, t *telemetry.Telemetry) (daemon.Service, error) {
		return searchsvc.New(ctx, s.config(log, t))
	}
	return daemon.Run(ctx, s.Addr, s.Process, open)
}

// config returns the configuration of the service.
func (s settings) config(log *slog.Logger, t *telemetry.Telemetry) searchsvc.Config {
	return searchsvc.Config{
		Of: s.Of, Dir: s.Data, Synonyms: s.Synonyms, CodeLists: s.CodeLists, Timeout: s.Timeout, MaxBehind: s.MaxBehind,
		LogKeys: s.PublicKey, Links: s.Links, Memory: s.Memory, Log: log, Telemetry: t,
	}
}
