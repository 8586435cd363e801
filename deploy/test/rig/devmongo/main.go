// Command devmongo serves the MongoDB wire protocol on machines without mongod, for
// development and tests. It is FerretDB 1 on SQLite, with one command at a time.
//
// MongoDB guarantees that an operation on one document is atomic, and the stores
// depend on it. FerretDB reads, changes and writes a document without a lock, so two
// conditional updates can both win. Therefore devmongo lets one command through at a
// time.
//
// It has no transactions, change streams, $expr, pipeline updates, Decimal128 or replica sets. The tests of the
// MongoDB store put members of a replica set before it. It uses indexes only for ids, booleans and ranges of whole
// numbers (source.sh), so it is no measure of speed. It survives kill -9, but no loss of power.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:27017", "address to listen on")
	data := flag.String("data", "", "data directory (required)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *data); err != nil {
		fmt.Fprintln(os.Stderr, "devmongo:", err)
		os.Exit(1)
	}
}

// run serves at addr, with its data in dir, until ctx is done.
func run(ctx context.Context, addr, dir string) error {
	if dir == "" {
		return errors.New("-data is missing")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	socket := filepath.Join(dir, "ferretdb.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove old socket: %w", err)
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{Unix: socket},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Handler:   "sqlite",
		SQLiteURL: "file:" + dir + "/?_pragma=synchronous(off)",
	})
	if err != nil {
		return fmt.Errorf("make server: %w", err)
	}
	var ferret, clients sync.WaitGroup
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	ferret.Go(func() { err = server.Run(serving) })
	fmt.Println("mongodb://" + listener.Addr().String())

	stopAccepting := context.AfterFunc(ctx, func() { listener.Close() })
	defer stopAccepting()
	var turn sync.Mutex // lets one command through at a time
	for {
		client, acceptErr := listener.Accept()
		if acceptErr != nil {
			break
		}
		clients.Go(func() {
			if err := serve(ctx, &turn, client, socket); err != nil && ctx.Err() == nil {
				slog.Error("serve client", "error", err)
			}
		})
	}
	clients.Wait()
	stopServing()
	ferret.Wait()
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// serve forwards a client's commands to FerretDB until the client leaves or ctx is done. The parameter `turn` is
// the lock that all clients share.
func serve(ctx context.Context, turn *sync.Mutex, client net.Conn, socket string) error {
	defer client.Close()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("reach server: %w", err)
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	for {
		command, err := readMessage(client)
		if err != nil {
			return gone(err)
		}
		answer, err := exchange(turn, server, command)
		if err != nil {
			return fmt.Errorf("forward command: %w", err)
		}
		if _, err := client.Write(answer); err != nil {
			return gone(err)
		}
	}
}

// exchange sends a command and waits for its answer. Meanwhile, it holds the lock `turn`.
func exchange(turn *sync.Mutex, server net.Conn, command []byte) (answer []byte, err error) {
	turn.Lock()
	defer turn.Unlock()
	commands, err := singly(command)
	if err != nil {
		return nil, err
	}
	for _, command := range commands {
		if answer, err = exchangeOne(server, command); err != nil {
			return nil, err
		}
		if done, err := succeeded(answer); err != nil || !done {
			return answer, err
		}
	}
	return answer, nil
}

func exchangeOne(server net.Conn, command []byte) ([]byte, error) {
	if _, err := server.Write(command); err != nil {
		return nil, err
	}
	return readMessage(server)
}

// gone returns nil if an error means that the client has left. Otherwise it returns the error.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
