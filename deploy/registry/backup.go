package registry

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"asset-registry/shared/boltfile"
	"asset-registry/shared/httpserver"
)

// controlFile is the socket in the data directory by which commands on the same
// machine talk to the registry that runs there. Who may open the directory may
// do so.
const controlFile = "control.sock"

// kept is what a backup holds, in this order. The assets come before the tokens,
// so that a transfer which an asset tells of is in the backup too.
// The server's id is there only if it was pinned.
var kept = []string{formatFile, secretFile, serverIDFile, assetsFile, tokensFile}

// snapshot writes a store's file as it is at one moment.
type snapshot func(to func(size int64) (io.Writer, error)) error

// archive writes a backup of the directory, with the stores as snapshots have them.
func archive(w io.Writer, dir string, snapshots map[string]snapshot) error {
	t := tar.NewWriter(w)
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(dir, name)); name == serverIDFile && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		entry := func(size int64) (io.Writer, error) {
			return t, t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: time.Now(), Format: tar.FormatPAX})
		}
		take, isStore := snapshots[name]
		if !isStore {
			take = func(to func(int64) (io.Writer, error)) error { return copyFile(filepath.Join(dir, name), to) }
		}
		if err := take(entry); err != nil {
			return fmt.Errorf("back up %s: %w", name, err)
		}
	}
	return t.Close()
}

func copyFile(path string, to func(size int64) (io.Writer, error)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	w, err := to(int64(len(text)))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// control answers commands on the data directory's socket until stop.
func control(ctx context.Context, dir string, snapshots map[string]snapshot, makeAdminKey adminKeyMaker, log *slog.Logger) (stop func() error, err error) {
	path := filepath.Join(dir, controlFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed: we have the stores' locks
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Warn("backups are only possible while the registry is stopped", "error", err) // a path may be too long for a socket
		return func() error { return nil }, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /backup", func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil { // it takes as long as it takes
			log.Warn("back up", "error", err)
		}
		if err := archive(w, dir, snapshots); err != nil {
			log.Error("back up", "error", err)
			panic(http.ErrAbortHandler) // so that nobody takes what was sent for the whole
		}
		log.Info("a backup was taken")
	})
	mux.HandleFunc("POST "+adminKeyPath, answerAdminKey(makeAdminKey))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- httpserver.Serve(ctx, listener, mux, log, httpserver.ServeOptions{}) }()
	return func() error {
		cancel()
		return <-served
	}, nil
}

// Backup writes a backup of a data directory into a new file, whole or not at
// all, whether the registry runs there or not. It holds the secret: the file is
// for its owner alone.
func Backup(ctx context.Context, dir, file string) (err error) {
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("%s is there already", file)
	}
	w, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+unfinished) // readable by its owner alone
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(w.Name()))
		}
	}()
	if err := errors.Join(takeBackup(ctx, dir, w), w.Sync(), w.Close()); err != nil {
		return err
	}
	if err := os.Link(w.Name(), file); err != nil { // fails if there is one by now
		return err
	}
	return errors.Join(os.Remove(w.Name()), syncDirectory(filepath.Dir(file)))
}

// controlClient calls the registry that runs on a data directory, if one does.
func controlClient(dir string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, controlFile))
	}}}
}

// isStopped tells whether a call has failed because no registry runs there.
func isStopped(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

func takeBackup(ctx context.Context, dir string, w io.Writer) error {
	client := controlClient(dir)
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://registry/backup", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if isStopped(err) {
		return archive(w, dir, map[string]snapshot{assetsFile: stopped(dir, assetsFile), tokensFile: stopped(dir, tokensFile)})
	}
	if err != nil {
		return fmt.Errorf("ask the registry for a backup: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the registry did not finish the backup, its log says why: %w", err)
	}
	return nil
}

// stopped is the snapshot of a store that nobody has open.
func stopped(dir, name string) snapshot {
	return func(to func(size int64) (io.Writer, error)) error {
		return boltfile.SnapshotOf(filepath.Join(dir, name), to)
	}
}

// Restore makes a data directory of a backup, whole or not at all. There must be
// none, or an empty one.
func Restore(file, dir string) (err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("data directory %s is not empty; name another one", dir)
	}
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	dir = filepath.Clean(dir)
	if err := makeDirectory(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	making, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+unfinished) // for its owner alone
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(making))
		}
	}()
	if err := extract(r, making); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, name := range []string{assetsFile, tokensFile} {
		if err := stopped(making, name)(func(int64) (io.Writer, error) { return io.Discard, nil }); err != nil {
			return fmt.Errorf("read %s: %s: %w", file, name, err)
		}
	}
	if err := syncDirectory(making); err != nil {
		return err
	}
	if err := os.Rename(making, dir); err != nil { // takes the place of an empty one
		return err
	}
	return syncDirectory(filepath.Dir(dir))
}

// extract writes the files of a backup, all of them and no others.
func extract(r io.Reader, dir string) error {
	t := tar.NewReader(r)
	missing := slices.Clone(kept)
	for len(missing) > 0 {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it is no backup of the registry, or not the whole: %s is missing", missing[0])
		}
		if err != nil {
			return err
		}
		if missing[0] == serverIDFile && header.Name != serverIDFile {
			missing = missing[1:]
		}
		if header.Name != missing[0] {
			return fmt.Errorf("it is no backup of the registry: it holds %q, where %s should be", header.Name, missing[0])
		}
		missing = missing[1:]
		w, err := os.OpenFile(filepath.Join(dir, header.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, t)
		if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
			return err
		}
	}
	return nil
}
