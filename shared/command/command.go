// Package command handles the signals of a program, prints its error in plain words, and sets its exit code.
package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"asset-registry/shared/errs"
)

// Usage is the exit code of a program that cannot do its task.
const Usage = 2

// Main runs a program with its arguments until SIGTERM or an interrupt. It prints an error of the
// program as one line (Words), and exits with the code that the last argument returns for the error. If the last
// argument is nil, the exit code is Usage.
func Main(name string, run func(ctx context.Context, args []string) error, code func(error) int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, Words(err))
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
