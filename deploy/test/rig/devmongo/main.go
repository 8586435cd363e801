// Command devmongo is a server of the MongoDB wire protocol for machines that
// have no mongod: FerretDB 1 on SQLite, an implementation independent of ours
// and of MongoDB. It is for development and tests.
//
// FerretDB reads a document, changes it and writes it back without holding
// anything in between, so of two guarded updates at once both may win. MongoDB
// promises that an operation on one document is atomic, and our stores build on
// that. So clients are let through to FerretDB one command at a time.
//
// What it lacks: transactions, change streams, $expr, pipeline updates,
// Decimal128, replica sets. It searches by scanning, so it is slow beyond some
// hundred documents, and says nothing about speed.
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
	data := flag.String("data", "", "directory of the data")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *data); err != nil {
		fmt.Fprintln(os.Stderr, "devmongo:", err)
		os.Exit(1)
	}
}

// run serves at addr until ctx is done, with its data in dir.
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
		SQLiteURL: "file:" + dir + "/",
	})
	if err != nil {
		return fmt.Errorf("make server: %w", err)
	}
	var behind, clients sync.WaitGroup
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	behind.Go(func() { err = server.Run(serving) })
	fmt.Println("mongodb://" + listener.Addr().String())

	stopAccepting := context.AfterFunc(ctx, func() { listener.Close() })
	defer stopAccepting()
	turn := &sync.Mutex{}
	for {
		client, acceptErr := listener.Accept()
		if acceptErr != nil {
			break
		}
		clients.Go(func() {
			if err := serve(ctx, turn, client, socket); err != nil && ctx.Err() == nil {
				slog.Error("serve client", "error", err)
			}
		})
	}
	clients.Wait()
	stopServing()
	behind.Wait()
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// serve passes a client's commands on to the server, one at a time of all the
// clients', until the client goes or ctx is done.
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
			return fmt.Errorf("pass command on: %w", err)
		}
		if _, err := client.Write(answer); err != nil {
			return gone(err)
		}
	}
}

// exchange sends a command and waits for its answer, and lets nobody else do so
// meanwhile.
func exchange(turn *sync.Mutex, server net.Conn, command []byte) ([]byte, error) {
	turn.Lock()
	defer turn.Unlock()
	if _, err := server.Write(command); err != nil {
		return nil, err
	}
	return readMessage(server)
}

// gone returns nil for the errors of a client that has left, however it did.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
