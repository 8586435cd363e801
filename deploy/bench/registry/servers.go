package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
)

// startRegistry starts a registry without rate limits, with its data in a new folder.
func (b *bench) startRegistry(ctx context.Context, bin, folder string) (addr string, stop func(), err error) {
	if addr, err = porttest.FreeAddr(); err != nil {
		return "", nil, err
	}
	dir, silent := filepath.Join(b.dir, folder), &processes.Output{Also: io.Discard}
	registry, err := processes.Standalone(ctx, bin, addr, dir, silent)
	if err != nil {
		return "", nil, err
	}
	return addr, func() { _ = registry.Kill() }, nil // a kill is safe, because the data are removed afterwards
}

// serveBare serves the files of dir from memory, each under its name, and prints the address of the server.
func serveBare(ctx context.Context, dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read bodies: %w", err)
	}
	mux := http.NewServeMux()
	for _, name := range names {
		body, err := os.ReadFile(filepath.Join(dir, name.Name()))
		if err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		mux.HandleFunc("/"+name.Name(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.Write(body)
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("find a port: %w", err)
	}
	fmt.Println(listener.Addr())
	context.AfterFunc(ctx, func() { listener.Close() })
	return http.Serve(listener, mux)
}

// startBare starts this program again with -bare, and reads the address that it prints.
func (b *bench) startBare(ctx context.Context, bodies string) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "-bare", bodies)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("connect to the output of the bare handler: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the bare handler: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the error only reports the kill
	}
	if _, err := fmt.Fscanln(out, &b.bare); err != nil {
		stop()
		return nil, fmt.Errorf("read the address of the bare handler: %w", err)
	}
	return stop, nil
}
