package registryctl

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"asset-registry/deploy/registry/witness"
	"asset-registry/shared/command"
	"asset-registry/shared/private"
)

// runWitness runs a witness of public logs until the process gets a signal to end.
type runWitness struct {
	Addr    string `default:"127.0.0.1:8090" help:"Address on which the witness answers."`
	KeyFile string `required:"" placeholder:"FILE" out:"" help:"Secret key of the witness. --name makes an absent one."`
	Name    string `help:"Name of the witness, such as witness.example/w1. By default the key's name."`
	Policy  string `required:"" placeholder:"FILE" in:"" help:"Policy file (C2SP tlog-policy). It names the logs."`
	State   string `required:"" placeholder:"DIR" help:"Memory of the witness. Never restore an older copy of it."`
}

// Run prints the witness's public key as a line of a policy file. Then it answers requests.
func (c runWitness) Run(ctx context.Context, p *program) error {
	logs, err := readLogs(c.Policy)
	if err != nil {
		return err
	}
	key, err := witness.ReadKey(c.KeyFile, c.Name)
	if err != nil {
		return err
	}
	if err := p.note("witness %s %s", key.Public().Name(), key.Public()); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := private.Check(log, c.State); err != nil {
		return err
	}
	w, err := witness.New(witness.Config{Key: key, Logs: logs, State: c.State, Log: log})
	if err != nil {
		return err
	}
	listener, err := command.Listen("--addr", c.Addr)
	if err != nil {
		return errors.Join(err, w.Close())
	}
	log.Info("listening", "addr", listener.Addr().String())
	return errors.Join(w.Serve(ctx, listener), w.Close())
}
