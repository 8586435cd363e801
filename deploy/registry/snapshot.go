package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"asset-registry/assetsvc"
)

// snapshotMaker makes a snapshot of all listed assets (assetsvc.Server.MakeSnapshot).
type snapshotMaker func(context.Context) (assetsvc.Made, error)

const maxSnapshotAnswer = 4 << 10 // bytes

// answerSnapshot makes a snapshot for each request. The request has no time limit.
func answerSnapshot(makeOne snapshotMaker, log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
			log.Warn("remove the snapshot's deadline", "error", err)
		}
		made, err := makeOne(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, made)
	}
}

// MakeSnapshot tells the registry that runs on a data directory to make a snapshot, and returns a sentence
// about the result.
func MakeSnapshot(ctx context.Context, dir string) (string, error) {
	resp, err := ask(ctx, dir, http.MethodPost, snapshotPath)
	if errors.Is(err, errNoneRuns) {
		return "", errors.New("no registry runs on the data directory, and only a running one makes snapshots")
	}
	if err != nil {
		return "", fmt.Errorf("ask the registry for a snapshot: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSnapshotAnswer))
	if err != nil {
		return "", fmt.Errorf("ask the registry for a snapshot: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the registry makes no snapshot: %s", strings.TrimSpace(string(text)))
	}
	return string(text), nil
}
