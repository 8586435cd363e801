package registry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"asset-registry/authsvc"
)

// adminKeyMaker makes a key for the admin API, in a name.
type adminKeyMaker func(ctx context.Context, name string) (secret string, err error)

const (
	adminKeyPath = "/admin-key"
	maxKeyAnswer = 4 << 10 // bytes
)

// answerAdminKey answers who may open the data directory: they may read the
// registry's secret as well.
func answerAdminKey(create adminKeyMaker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		secret, err := create(r.Context(), r.URL.Query().Get("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, secret)
	}
}

// AdminKey makes a key for the admin API of the registry in a data directory,
// whether it runs or not, and returns it: it is kept nowhere.
func AdminKey(ctx context.Context, dir, name string) (string, error) {
	client := controlClient(dir)
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://registry"+adminKeyPath+"?name="+url.QueryEscape(name), nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if isStopped(err) {
		return adminKeyOfStopped(ctx, dir, name)
	}
	if err != nil {
		return "", fmt.Errorf("ask the registry for a key: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxKeyAnswer))
	if err != nil {
		return "", fmt.Errorf("ask the registry for a key: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the registry makes no key: %s", strings.TrimSpace(string(text)))
	}
	return string(text), nil
}

func adminKeyOfStopped(ctx context.Context, dir, name string) (string, error) {
	secrets, err := openData(dir)
	if err != nil {
		return "", err
	}
	key, err := authsvc.AdminKey(ctx, authsvc.Config{
		Store: "file:" + filepath.Join(dir, tokensFile), Secrets: secrets, Log: slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, name)
	if err != nil {
		return "", err
	}
	return key, syncDirectory(dir)
}
