package mongostore

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/dataformat"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// TestDatabasesOfOtherFormatsAreRefused gives a database each name that a format had before the first release,
// and some other names. In two old formats, the newest position was a text. The refusal must be one line, and
// must name the version that reads the format.
func TestDatabasesOfOtherFormatsAreRefused(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "others")
	db := expect.Get(connect(uri, rigTimeout))(t)
	defer db.client.Disconnect(t.Context())
	o := Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), Timeout: rigTimeout}
	for _, c := range []struct {
		name string
		last any
	}{
		{"asset-registry assets 1", int64(7)}, {"asset-registry assets 1, being moved in", int64(7)},
		{"asset-registry assets 1, being upgraded", "moved"}, {"asset-registry assets 2", "moved"},
		{"asset-registry assets 2, being moved in", "moved"}, {"asset-registry assets 4", int64(7)}, {"something else", nil},
	} {
		expect.Get(db.clocks.DeleteMany(t.Context(), bson.D{}))(t)
		stamped := append(withID("clock"), bson.E{Key: "format", Value: c.name}, bson.E{Key: "last", Value: c.last})
		second := append(withID("clock 2"), bson.E{Key: "format", Value: c.name}, bson.E{Key: "last", Value: int64(7)})
		expect.Get(db.clocks.InsertMany(t.Context(), []any{stamped, second}))(t)
		want := fmt.Sprintf("%q, not %q: the commit %s ", c.name, format, dataformat.UpgradesCommit)
		_, opened := Open(t.Context(), uri, o)
		_, imported := OpenImport(t.Context(), uri)
		for does, err := range map[string]error{"open": opened, "import": imported} {
			text := fmt.Sprint(err)
			if !errors.Is(err, errForeign) || !strings.Contains(text, want) || strings.Contains(text, "\n") {
				t.Errorf("%s %q: got %v, want one line with %q", does, c.name, err, want)
			}
		}
		// A store that could not reach the database when it started must still refuse to read it later.
		s := expect.Get(newStore(uri, o.withDefaults()))(t)
		expect.ErrOf(t, errNoClock, "a page of %q", c.name)(s.Page(t.Context(), registry.Query{Limit: 1}))
		expect.Try(t, s.closers.Close())
	}
}

func TestAMalformedAddressIsNotRepeated(t *testing.T) {
	o := Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), Timeout: rigTimeout}
	_, err := Open(t.Context(), "mongodb://user:hunter2@/", o)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want an error without the password", err)
	}
}
