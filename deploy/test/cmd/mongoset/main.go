// Command mongoset runs a command beside a replica set of three real MongoDB servers: mongoset COMMAND [ARGUMENT...]
//
// The variable MONGOD names the program of the servers. The command finds the set in MONGODB_URI. The set ends with the
// command, and its data are removed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"asset-registry/deploy/test/rig/replicaset"
)

const ending = 20 * time.Second // longest end of the command, then it is killed

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Getenv("MONGOD"), os.Args[1:])
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(max(1, exit.ExitCode()))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mongoset:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, mongod string, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("usage: mongoset COMMAND [ARGUMENT...]")
	}
	if mongod == "" {
		return errors.New("set MONGOD to the program of a MongoDB server")
	}
	set, err := replicaset.Start(ctx, mongod)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.End()) }()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "MONGODB_URI="+set.URI(""))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, ending
	return cmd.Run()
}
