package mongostore

import (
	"testing"
	"time"

	"asset-registry/filesvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// rigTimeout is long enough for the slow MongoDB server of the tests.
const rigTimeout = 20 * time.Second

func TestConformance(t *testing.T) {
	server := mongotest.Start(t)
	open := func(t *testing.T) storetest.Metadata {
		t.Helper()
		s, err := Open(t.Context(), server.URI(t, "files"), rigTimeout)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	// Several tests use the first store, so it is closed only at the end of the whole test.
	first := open(t)
	storetest.RunMetadata(t, func(*testing.T) storetest.Metadata { return first }, open)
}
