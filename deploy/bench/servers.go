package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// startRegistry starts the registry without rate limits, and waits until it answers.
func (b *bench) startRegistry(ctx context.Context, binary string) (stop func(), err error) {
	b.registry, err = freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "serve", "--sandbox", "--limits=off", "--addr", b.registry, "--data", filepath.Join(b.dir, "data"))
	log, err := os.Create(filepath.Join(b.dir, "log"))
	if err != nil {
		return nil, fmt.Errorf("make the log: %w", err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the registry: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()         // says that it was killed
		log.Close()
	}
	for range 100 {
		if resp, err := http.Get("http://" + b.registry + "/readyz"); err == nil {
			resp.Body.Close()
			return stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	text, _ := os.ReadFile(log.Name()) // shown as far as there is one
	return nil, fmt.Errorf("the registry does not answer: %s", text)
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// serveBare answers /name with the file of that name in dir, kept in memory.
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

func (b *bench) startBare(ctx context.Context, bodies string) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find myself: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "-bare", bodies)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("listen to the bare handler: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the bare handler: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
	}
	if _, err := fmt.Fscanln(out, &b.bare); err != nil {
		stop()
		return nil, fmt.Errorf("hear where the bare handler is: %w", err)
	}
	return stop, nil
}
