// Package command handles the signals of a program, prints its error in plain words, and sets its exit code.
package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"asset-registry/shared/errs"
)

// The exit codes of a program that cannot do its task. A server has the second one for a wrong setting: to start it
// again does not help (EX_CONFIG of sysexits.h).
const (
	Usage       = 2
	BadSettings = 78
)

// ErrSettings is the error of a server with a wrong setting.
// It has no text: the faults say what is wrong.
var ErrSettings = errors.New("")

// Main runs a program with its arguments until SIGTERM or an interrupt. It prints an error of the
// program as one line (Words), and exits with the code that the last argument returns for the error. If the last
// argument is nil, the exit code is Usage. For ErrSettings it is always BadSettings.
func Main(name string, run func(ctx context.Context, args []string) error, code func(error) int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, Words(err))
	if errors.Is(err, ErrSettings) {
		os.Exit(BadSettings)
	}
	if code == nil {
		os.Exit(Usage)
	}
	os.Exit(code(err))
}

// Listen listens on a TCP address. The error names the flag that has the address.
func Listen(flag, addr string) (net.Listener, error) {
	listener, err := net.Listen("tcp", addr)
	return listener, errs.In(err, "%s", flag)
}
