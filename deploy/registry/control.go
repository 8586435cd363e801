package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"asset-registry/assetsvc"
	"asset-registry/shared/closing"
	"asset-registry/shared/command"
	"asset-registry/shared/errs"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/httpserver"
)

// controlFile is a Unix socket in the data directory. Commands on the same machine use it to call the running
// registry. Only the user of the registry and root may use it (listenControl).
const controlFile = "control.sock"

// The paths that the socket serves.
const (
	backupPath   = "/backup"
	failurePath  = "/backup/failure" // why the last backup failed
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

// serveControl serves the socket in the background until the list is closed. If the socket cannot be opened,
// it logs a warning. In this case, commands work only while the registry is stopped.
func serveControl(ctx context.Context, c controlSocket, log *slog.Logger, opened *closing.List) error {
	path := filepath.Join(c.dir, controlFile)
	// A killed process may have left its socket. This process holds the locks of the stores, so no running
	// process uses the socket.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open control socket: %w", err)
	}
	listener, err := listenControl(ctx, path)
	if err != nil { // for example, the path is too long for a socket
		log.Warn("no control socket: stop the registry to back it up", "error", err)
		return nil
	}
	mux := http.NewServeMux()
	var failure atomic.Value // a string
	failure.Store("")
	mux.HandleFunc("GET "+failurePath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, failure.Load()) })
	mux.HandleFunc("GET "+backupPath, func(w http.ResponseWriter, r *http.Request) {
		o := BackupOptions{Certificate: r.URL.RawQuery == withCertificate}
		if err := archive(patient(w, stall), c.dir, c.snapshots, o); err != nil {
			log.Error("back up", "error", err)
			failure.Store(command.Words(err))
			panic(http.ErrAbortHandler) // breaks the connection, so that the client sees an incomplete backup
		}
		log.Info("a backup was taken")
	})
	// A caller who can open the socket can also read the registry's secret in the data directory, so a key needs no
	// authentication.
	mux.HandleFunc("POST "+adminKeyPath, answering(log, func(r *http.Request) (string, error) {
		return c.adminKey(r.Context(), r.URL.Query().Get("name"))
	}))
	mux.HandleFunc("POST "+snapshotPath, answering(log, func(r *http.Request) (string, error) {
		made, err := c.copyAll(r.Context())
		return made.String(), err
	}))
	mux.HandleFunc("GET "+statusPath, answering(log, func(r *http.Request) (string, error) {
		status, err := c.status(r.Context())
		text, err2 := json.Marshal(status)
		return string(text), errors.Join(err, err2)
	}))
	opened.Serve(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return httpserver.Serve(ctx, listener, mux, log, httpserver.ServeOptions{})
	})
	return nil
}

// stall is the time after which a backup is aborted if its receiver reads nothing.
const stall = 30 * time.Second

// patient returns a writer of an answer that may take a day. It fails if the receiver does not read 64 KiB within the
// given time.
func patient(w http.ResponseWriter, within time.Duration) io.Writer {
	return httpserver.NewSender(w, httpserver.Pace{Bytes: 64 << 10, Within: within, All: 24 * time.Hour})
}

// errNoneRuns is the error of a request to a registry that is stopped.
var errNoneRuns = errors.New("no registry runs on the data directory")

// ask sends a request to the registry that runs on a data directory.
func ask(ctx context.Context, dir, method, path string) (*http.Response, error) {
	socket := filepath.Join(dir, controlFile)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://registry"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := httpclient.New(&http.Transport{DialContext: dial, DisableKeepAlives: true}).Do(req)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, errNoneRuns
	}
	return resp, inControl(socket, err)
}

// inControl says what is wrong with a call of the socket.
func inControl(socket string, err error) error {
	if of, isCall := errors.AsType[*url.Error](err); isCall {
		err = of.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: run the command as root or as the user of the registry, such as sudo -u registry",
			socket, fs.ErrPermission)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s: the registry broke off: it answers root and its own user only, and nobody while it ends",
			socket)
	}
	return err
}

// snapshotMaker makes a snapshot of all listed assets (assetsvc.Server.MakeSnapshot).
type snapshotMaker func(context.Context) (assetsvc.Made, error)

const maxAnswer = 1 << 20 // bytes

// answering answers each request with the result of the function `do`. The request has no time limit.
func answering(log *slog.Logger, do func(*http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
			log.Warn("remove the deadline of an answer", "error", err)
		}
		made, err := do(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, made)
	}
}

// order asks the registry that runs on a data directory for something, and returns the text of its answer. The
// argument `made` is a word for it, which errors name.
func order(ctx context.Context, dir, method, path, made string) (string, error) {
	resp, err := ask(ctx, dir, method, path)
	if errors.Is(err, errNoneRuns) {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("ask the registry for a %s: %w", made, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the registry makes no %s: %s", made, strings.TrimSpace(string(text)))
	}
	return string(text), errs.In(err, "ask the registry for a %s", made)
}

// MakeSnapshot tells the registry that runs on a data directory to make a snapshot, and returns a sentence
// about the result.
func MakeSnapshot(ctx context.Context, dir string) (string, error) {
	told, err := order(ctx, dir, http.MethodPost, snapshotPath, "snapshot")
	if errors.Is(err, errNoneRuns) {
		return "", errors.New("no registry runs on the data directory, and only a running one makes snapshots")
	}
	return told, err
}
