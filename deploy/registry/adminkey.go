package registry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"asset-registry/authsvc"
	"asset-registry/shared/durable"
)

// adminKeyMaker creates a key for the admin API and returns its secret. The argument `name` goes into the audit
// log.
type adminKeyMaker func(ctx context.Context, name string) (secret string, err error)

// AdminKey creates a key for the admin API of the registry in a data directory, and returns the key. The
// registry may be running or stopped. It stores only a hash of the key.
func AdminKey(ctx context.Context, dir, name string) (string, error) {
	key, err := order(ctx, dir, http.MethodPost, adminKeyPath+"?name="+url.QueryEscape(name), "key")
	if errors.Is(err, errNoneRuns) {
		return adminKeyOfStopped(ctx, dir, name)
	}
	return key, err
}

// adminKeyOfStopped creates the key in the files of a registry that does not run. It does not create a data
// directory.
func adminKeyOfStopped(ctx context.Context, dir, name string) (string, error) {
	secrets, err := openExisting(dir)
	if err != nil {
		return "", err
	}
	key, err := authsvc.AdminKey(ctx, authsvc.Config{
		Store:   "file:" + filepath.Join(dir, tokensFile),
		Secrets: secrets,
		Log:     warningsOnly(),
	}, name)
	if err != nil {
		return "", err
	}
	return key, durable.SyncDirectory(dir)
}

// AcceptKeys lets the keys of a stopped registry go on as they are (authsvc.AcceptKeys).
func AcceptKeys(ctx context.Context, dir string) error {
	secrets, err := openExisting(dir)
	if err != nil {
		return err
	}
	return authsvc.AcceptKeys(ctx, authsvc.Config{
		Store: "file:" + filepath.Join(dir, tokensFile), Secrets: secrets, Log: warningsOnly(),
	})
}

// warningsOnly returns the log for a command: it writes warnings and errors to the standard error output.
func warningsOnly() *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
