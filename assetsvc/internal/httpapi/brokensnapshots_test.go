package httpapi

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/snapshot"
)

// brokenSnapshots returns an error for each read.
type brokenSnapshots struct{}

func (brokenSnapshots) Newest() (m snapshot.Manifest, err error) {
	return m, errors.New("input/output error")
}
func (brokenSnapshots) Segment(string) (*os.File, error) {
	return nil, errors.New("input/output error")
}

func (brokenSnapshots) Interval() time.Duration { return 0 }

func (brokenSnapshots) NewestCopies() (m snapshot.Manifest, err error) {
	return m, errors.New("input/output error")
}

func (brokenSnapshots) Copy(string, string) (*os.File, error) {
	return nil, errors.New("input/output error")
}

// closedSegment is a directory that gives a closed file for each segment.
type closedSegment struct{ brokenSnapshots }

func (closedSegment) Segment(string) (*os.File, error) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return f, f.Close()
}

// TestABrokenDirectoryIsAnInternalError asks for files of a directory that cannot be read. The client does not get the
// cause, but the log names it.
func TestABrokenDirectoryIsAnInternalError(t *testing.T) {
	var log bytes.Buffer
	s := newWithSnapshotsLogging(t, &log)
	s.api.ServeSnapshots(brokenSnapshots{})
	hash := strings.Repeat("0", 64)
	for _, path := range []string{"/api/2.5/snapshot", "/api/2.5/snapshot/segments/" + hash + ".ndjson.zst",
		"/data/manifest.json", "/data/assets.csv", "/data/" + hash + "/assets.csv"} {
		log.Reset()
		got := s.do(t, exchange{"GET", path, "", "", "", 500, ""})
		if strings.Contains(got.Body.String(), "input/output") || !strings.Contains(log.String(), "input/output error") {
			t.Errorf("%s: got %s and the log %s, want the cause in the log only", path, got.Body, log.String())
		}
	}
	s.api.ServeSnapshots(closedSegment{})
	log.Reset()
	s.do(t, exchange{"GET", "/api/2.5/snapshot/segments/" + hash + ".ndjson.zst", "", "", "", 500, "server"})
	if !strings.Contains(log.String(), "send file: ") {
		t.Errorf("got the log %s, want the failure to send the file", log.String())
	}
}
