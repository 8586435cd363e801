package registryctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"asset-registry/deploy/registry/witness"
	"asset-registry/shared/translog"
)

// runWitness runs a witness of public logs until it is told to end.
type runWitness struct {
	Addr    string `default:"127.0.0.1:8090" help:"Address on which the witness answers."`
	KeyFile string `required:"" placeholder:"FILE" help:"Secret key of the witness. With --name it is made if absent."`
	Name    string `help:"Name of the witness, such as witness.example/w1. By default that of the key."`
	Policy  string `required:"" placeholder:"FILE" help:"Policy file (C2SP tlog-policy). The witness knows its logs."`
	State   string `required:"" placeholder:"DIR" help:"Memory of the witness. Never restore an older copy of it."`
}

// Run prints the witness's public key as the line of a policy file, then answers.
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
	w, err := witness.New(witness.Config{Key: key, Logs: logs, State: c.State, Log: log})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return errors.Join(err, w.Close())
	}
	log.Info("listening", "addr", listener.Addr().String())
	return errors.Join(w.Serve(ctx, listener), w.Close())
}

// readLogs returns the keys of the logs of a policy file.
func readLogs(file string) ([]translog.PublicKey, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	defer func() { _ = r.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(r, translog.MaxPolicy+1))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	policy, err := translog.ParsePolicy(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var keys []translog.PublicKey
	for _, log := range policy.Logs {
		keys = append(keys, log.Key)
	}
	return keys, nil
}
