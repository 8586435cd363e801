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

// controlFile is a Unix socket in the data directory. Commands on the same machine use it to call the running
// registry. Only the user of the registry and root may use it (listenControl).
const controlFile = "control.sock"

// The paths that the socket serves.
const (
	backupPath   = "/backup"
	adminKeyPath = "/admin-key"
	snapshotPath = "/snapshot"
	statusPath   = "/status"
)

// withCertificate is the query that asks for a backup with the ACME keys.
const withCertificate = "certificate"

// controlSocket has the data and functions that the socket serves.
type controlSocket struct {
	dir       string
	snapshots map[string]snapshot // by file name
	adminKey  adminKeyMaker
	copyAll   snapshotMaker
	status    func(context.Context) (Status, error)
}

// serveControl serves the socket in the background until the function `stop` is called. If the socket cannot be opened,
// it logs a warning. In this case, commands work only while the registry is stopped.
func serveControl(ctx context.Context, c controlSocket, log *slog.Logger) (stop func() error, err error) {
	path := filepath.Join(c.dir, controlFile)
	// A killed process may have left its socket. This process holds the locks of the stores, so no running
	// process uses the socket.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	listener, err := listenControl(ctx, path)
	if err != nil { // for example, the path is too long for a socket
		log.Warn("no control socket: stop the registry to back it up", "error", err)
		return func() error { return nil }, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+backupPath, func(w http.ResponseWriter, r *http.Request) {
		o := BackupOptions{Certificate: r.URL.RawQuery == withCertificate}
		if err := archive(moving{w, http.NewResponseController(w), stall}, c.dir, c.snapshots, o); err != nil {
			log.Error("back up", "error", err)
			panic(http.ErrAbortHandler) // breaks the connection, so that the client sees an incomplete backup
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

// stall is the time after which a backup is aborted if its receiver reads nothing.
const stall = 30 * time.Second

// moving is an answer that may take any time in total, because each write gets a new deadline.
type moving struct {
	http.ResponseWriter
	controller *http.ResponseController
	within     time.Duration
}

// Write fails if the receiver reads nothing for the duration in the field `within`.
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

// isStopped reports whether the registry of a data directory is stopped. The argument `err` is the error of a call
// with a controlClient.
func isStopped(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
