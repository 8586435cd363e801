package mongostore

import (
	"log/slog"
	"regexp"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// rigTimeout suits the rig, which takes its time.
const rigTimeout = 20 * time.Second

func opener(server *mongotest.Server) storetest.Opener {
	return func(t *testing.T, name string, now func() time.Time) registry.Store {
		t.Helper()
		return open(t, server, name, now)
	}
}

var notInNames = regexp.MustCompile(`[^a-z]+`)

// open opens a store in a database of the test's own.
func open(t *testing.T, server *mongotest.Server, name string, now func() time.Time) *Store {
	t.Helper()
	database := "t" + notInNames.ReplaceAllString(t.Name(), "")
	database = database[max(0, len(database)-40):] + name
	s, err := Open(t.Context(), server.URI(t, database), Options{Now: now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Timeout: rigTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := mongotest.Start(t)
	storetest.Run(t, opener(server))
}
