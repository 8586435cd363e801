package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"asset-registry/shared/httpclient"
	"asset-registry/shared/httpserver"
)

// controlFile is a Unix socket in the data directory. Commands on the same machine
// use it to call the running registry. Access to the directory is the permission.
const controlFile = "control.sock"

// The paths that the socket serves.
const (
	backupPath   = "/backup"
	adminKeyPath = "/admin-key"
	snapshotPath = "/snapshot"
	statusPath   = "/status"
)

// withCertificate is the query of a backup with the keys of ACME.
const withCertificate = "certificate"

// controlSocket holds what the socket serves.
type controlSocket struct {
	dir       string
	snapshots map[string]snapshot // by file name
	adminKey  adminKeyMaker
	copyAll   snapshotMaker
	status    func(context.Context) (Status, error)
}

// serveControl serves the socket in the background until stop. If the socket cannot
// be opened, it logs a warning, and commands work on a stopped registry only.
func serveControl(ctx context.Context, c controlSocket, log *slog.Logger) (stop func() error, err error) {
	path := filepath.Join(c.dir, controlFile)
	// A killed process may have left its socket. No other one is in use: this process
	// holds the locks of the stores.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil { // the path may be too long for a socket
		log.Warn("no control socket: stop the registry to back it up", "error", err)
		return func() error { return nil }, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+backupPath, func(w http.ResponseWriter, r *http.Request) {
		o := BackupOptions{Certificate: r.URL.RawQuery == withCertificate}
		if err := archive(moving{w, http.NewResponseController(w), stall}, c.dir, c.snapshots, o); err != nil {
			log.Error("back up", "error", err)
			panic(http.ErrAbortHandler) // breaks the connection: the client must not take a part for the whole
		}
		log.Info("a backup was taken")
	})
	mux.HandleFunc("POST "+adminKeyPath, answerAdminKey(c.adminKey))
	mux.HandleFunc("POST "+snapshotPath, answerSnapshot(c.copyAll, log))
	mux.HandleFunc("GET "+statusPath, answerStatus(c.status, log))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- httpserver.Serve(ctx, listener, mux, log, httpserver.ServeOptions{}) }()
	return func() error {
		cancel()
		return <-served
	}, nil
}

// stall is how long the receiver of a backup may take nothing before the backup ends.
const stall = 30 * time.Second

// moving is an answer without an end in time: each write has a deadline of its own.
type moving struct {
	http.ResponseWriter
	controller *http.ResponseController
	within     time.Duration
}

// Write fails if the receiver takes nothing for a while.
func (m moving) Write(p []byte) (int, error) {
	if err := m.controller.SetWriteDeadline(time.Now().Add(m.within)); err != nil {
		return 0, err
	}
	return m.ResponseWriter.Write(p)
}

// controlClient returns a client of the registry that runs on a data directory.
func controlClient(dir string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, controlFile))
	}
	return httpclient.New(&http.Transport{DialContext: dial})
}

// isStopped reports whether err, of a controlClient, means that no registry runs on
// the data directory.
func isStopped(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
