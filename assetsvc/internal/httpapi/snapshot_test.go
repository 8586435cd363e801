package httpapi

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// withSnapshots is a service that keeps snapshots.
type withSnapshots struct {
	service
	store *boltstore.Store
	api   *API
	keep  *snapshot.Keeper
}

func newWithSnapshots(t *testing.T) withSnapshots {
	t.Helper()
	return newWithSnapshotsLogging(t, io.Discard)
}

// newWithSnapshotsLogging returns a service that writes its log, in JSON, to the writer `to`.
func newWithSnapshotsLogging(t *testing.T, to io.Writer) withSnapshots {
	t.Helper()
	store, signer := newStore(t, time.Now), newSigner(t)
	log := slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
	keep := expect.Get(snapshot.New(store, snapshot.Options{
		Dir: t.TempDir(), Show: SnapshotLine(time.UTC, nil), Copies: true, Now: time.Now, Log: log,
	}))(t)
	engine := httpserver.NewEngine(httpserver.Options{Log: log, Timeout: time.Minute})
	api := New(registry.New(store, tokens{}, asset.Rules{Zone: time.UTC}, time.Now), time.UTC, 1<<20, NewMemory(1<<30))
	api.ServeSnapshots(keep)
	api.Route(engine, signer)
	return withSnapshots{service{engine, signer}, store, api, keep}
}

// list stores a listed asset.
func (s withSnapshots) list(t *testing.T, id string, body string) {
	t.Helper()
	expect.Get(s.store.Create(t.Context(), registry.Record{ID: id, Listed: true, Body: []byte(body)}))(t)
}

func (s withSnapshots) make(t *testing.T) snapshot.Manifest {
	t.Helper()
	return expect.Get(s.keep.Make(t.Context()))(t)
}

const (
	lowID  = "00000000000000000000000000000001"
	highID = "f0000000000000000000000000000001"
)

func TestASnapshotIsAnnouncedAndRead(t *testing.T) {
	s := newWithSnapshots(t)
	s.do(t, exchange{"GET", "/api/2.5/snapshot", "", "", "", 404, "There is no snapshot yet"})
	s.list(t, highID, `{"id":"`+highID+`","rectificationPeriod":{},"title":"b"}`)
	s.list(t, lowID, `{"id":"`+lowID+`","mode":"test","quantity":1.50}`)
	made := s.make(t)
	got := s.do(t, exchange{"GET", "/api/2.5/snapshot", "", "", "", 200, ""})
	var manifest struct {
		Data struct {
			Position, Date                   string
			Assets, Bytes, UncompressedBytes int
			Checkpoint                       string
			Segments                         []struct{ From, To, SHA256, Path string }
		}
	}
	expect.OK(t, json.Unmarshal(got.Body.Bytes(), &manifest))
	d := manifest.Data
	if d.Position != printPosition(made.Position, time.UTC) || d.Assets != 2 || len(d.Segments) != 1 {
		t.Errorf("got %+v, want position %d, 2 assets and 1 segment", d, made.Position)
	}
	tag := got.Header().Get("ETag")
	if got.Header().Get("Cache-Control") != "no-cache" || tag == "" {
		t.Errorf("got headers %v, want no-cache and a tag", got.Header())
	}
	s.doWith(t, http.Header{"If-None-Match": {tag}}, exchange{"GET", "/api/2.5/snapshot", "", "", "", 304, ""})
	s.doWith(t, http.Header{"If-None-Match": {"x"}}, exchange{"GET", "/api/2.5/snapshot", "", "", "", 400, "If-None-Match"})
	s.doWith(t, http.Header{"If-Match": {`"x"`}}, exchange{"GET", "/api/2.5/snapshot", "", "", "", 412, "precondition"})
	s.do(t, exchange{"GET", "/api/2.5/snapshot?%zz", "", "", "", 400, `"name":"query"`})
	s.do(t, exchange{"HEAD", "/api/2.5/snapshot", "", "", "", 200, ""})
	s.do(t, exchange{"GET", "/api/2.5/snapshot?opt_pretty=1", "", "", "", 200, "\n    \"data\""})
	s.do(t, exchange{"GET", "/api/2.4/snapshot", "", "", "", 404, "ask for the snapshot of version 2.5"})

	file := s.do(t, exchange{"GET", d.Segments[0].Path, "", "", "", 200, ""})
	decoder := expect.Get(zstd.NewReader(file.Body))(t)
	defer decoder.Close()
	text := expect.Get(io.ReadAll(decoder))(t)
	page := s.do(t, exchange{"GET", "/api/2.5/assets?opt_fields=*&mode=_all_", "", "", "", 200, ""})
	var listed struct{ Data []json.RawMessage }
	expect.OK(t, json.Unmarshal(page.Body.Bytes(), &listed))
	// A segment has the order of ids. The page has the order of the feed, which is the reverse here.
	want := string(listed.Data[1]) + "\n" + string(listed.Data[0]) + "\n"
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the lines differ from a page (-page +segment):\n%s", diff)
	}
}

// newestIs is a directory whose newest snapshot has the given manifest.
type newestIs struct {
	brokenSnapshots
	m snapshot.Manifest
}

func (s newestIs) Newest() (snapshot.Manifest, error) { return s.m, nil }

// TestAManifestShowsWhatTheSnapshotHas shows manifests with and without the members that not all snapshots have.
func TestAManifestShowsWhatTheSnapshotHas(t *testing.T) {
	s := newWithSnapshots(t)
	begun := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMicro()
	const times = `"position":"2026-11-20T12:00:00.000001+00:00","date":"2026-11-20T12:00:00.000000+00:00",`
	for i, c := range []struct {
		name string
		m    snapshot.Manifest
		want string
	}{
		{"a snapshot of no assets", snapshot.Manifest{Files: &snapshot.Files{}},
			`"assets":0,"bytes":0,"uncompressedBytes":0,"files":0,"fileBytes":0,"segments":[]`},
		{"files and a checkpoint", snapshot.Manifest{Assets: 4, Bytes: 5, Plain: 6, Checkpoint: "c",
			Files: &snapshot.Files{Count: 2, Bytes: 3}},
			`"assets":4,"bytes":5,"uncompressedBytes":6,"files":2,"fileBytes":3,"checkpoint":"c","segments":[]`},
		{"a snapshot of an earlier version", snapshot.Manifest{Assets: 4, Bytes: 5, Plain: 6,
			Segments: []snapshot.Segment{{From: "0", To: "f", Assets: 4, Bytes: 5, Plain: 6, SHA256: "a"}}},
			`"assets":4,"bytes":5,"uncompressedBytes":6,"segments":[{"from":"0","to":"f","assets":4,"bytes":5,` +
				`"uncompressedBytes":6,"sha256":"a","path":"/api/2.5/snapshot/segments/a.ndjson.zst"}]`},
	} {
		c.m.Begun, c.m.Position = begun+int64(i)*1_000_000, begun+1
		s.api.ServeSnapshots(newestIs{m: c.m})
		got := s.do(t, exchange{"GET", "/api/2.5/snapshot", "", "", "", 200, ""}).Body.String()
		want := `{"data":{` + strings.Replace(times, `12:00:00.000000`, `12:00:0`+strconv.Itoa(i)+`.000000`, 1) + c.want + `}}`
		expect.NoDiff(t, cmp.Diff(want, got), "%s: the manifest differs", c.name)
	}
}

// TestAManifestReservesMemory leaves free just as much memory as each form of a manifest needs, and then one byte
// less. In the second case the request must be refused, unless it needs no memory. While its answer is sent, the
// request must hold no memory.
func TestAManifestReservesMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/api/2.5/snapshot"
		s := newWithSnapshots(t)
		s.list(t, lowID, `{"id":"`+lowID+`","title":"x"}`)
		s.make(t)
		work, answers := s.api.memory.Work, s.api.memory.Answers
		need := int64(copies * s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.Len())
		for _, c := range []struct {
			method, query string
			need          int64
		}{
			{"GET", "", 0},
			{"GET", "?opt_pretty=1", need},
			{"GET", "?opt_jsonp=f", need},
			{"HEAD", "?opt_pretty=1", need},
		} {
			for _, free := range []int64{c.need, c.need - 1} {
				status := 200
				if free < c.need && c.need > 0 {
					status = 503
				}
				taken := work.Size() - max(free, 0)
				leave := expect.Get(work.Acquire(t.Context(), "another", taken))(t)
				w := &watched{ResponseRecorder: httptest.NewRecorder(), work: work}
				s.answer(t, w, nil, exchange{method: c.method, path: path + c.query})
				if held := max(w.held, work.Used()); w.Code != status || held > taken {
					t.Errorf("%s %s with %d bytes free: got %d and %d bytes held, want %d and none", c.method, c.query,
						work.Size()-taken, w.Code, held-taken, status)
				}
				leave()
			}
		}
		for answers.Hold(memory.Small) || answers.Hold(1) {
		}
		s.do(t, exchange{"GET", path, "", "", "", 503, "errors"})
	})
}

func TestWithoutADirectoryThereAreNoSnapshots(t *testing.T) {
	s := newService(t)
	s.do(t, exchange{"GET", "/api/2.5/snapshot", "", "", "", 404, "keeps no snapshots"})
	s.do(t, exchange{"GET", "/api/2.5/snapshot/segments/" + strings.Repeat("0", 64) + ".ndjson.zst", "", "", "", 404,
		"keeps no snapshots"})
}

func TestASegmentIsReadInParts(t *testing.T) {
	s := newWithSnapshots(t)
	s.list(t, lowID, `{"id":"`+lowID+`","title":"Нежитлове приміщення"}`)
	segment := s.make(t).Segments[0]
	path := "/api/2.5/snapshot/segments/" + segment.SHA256 + ".ndjson.zst"
	whole := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.String()
	size, n := strconv.Itoa(len(whole)), len(whole)
	tag := `"` + segment.SHA256 + `"`
	for _, c := range []struct {
		name, method, asked, condition string
		status                         int
		contentRange, body             string
	}{
		{"no range", "GET", "", "", 200, "", whole},
		{"the first bytes", "GET", "bytes=0-9", "", 206, "bytes 0-9/" + size, whole[:10]},
		{"a rest", "GET", "bytes=10-", "", 206, "bytes 10-" + strconv.Itoa(n-1) + "/" + size, whole[10:]},
		{"all of it", "GET", "bytes=0-", "", 206, "bytes 0-" + strconv.Itoa(n-1) + "/" + size, whole},
		{"an unknown unit", "GET", "items=0-9", "", 200, "", whole},
		{"no byte", "GET", "bytes=-0", "", 416, "bytes */" + size, "header"},
		{"behind the end", "GET", "bytes=" + size + "-", "", 416, "bytes */" + size, "header"},
		{"several ranges", "GET", "bytes=0-1,4-5", "", 416, "bytes */" + size, "one range"},
		{"very many ranges", "GET", "bytes=" + strings.Repeat("0-,", 5000) + "0-", "", 416, "bytes */" + size, "one range"},
		{"a sign", "GET", "bytes=+1-2", "", 200, "", whole},
		{"If-Range with the tag", "GET", "bytes=0-9", tag, 206, "", whole[:10]},
		{"If-Range with another tag", "GET", "bytes=0-9", `"x"`, 200, "", whole},
		{"HEAD", "HEAD", "bytes=0-9", "", 200, "", ""},
	} {
		h := http.Header{"Range": {c.asked}}
		if c.condition != "" {
			h.Set("If-Range", c.condition)
		}
		got := s.doWith(t, h, exchange{c.method, path, "", "", "", c.status, ""})
		if body := got.Body.String(); c.status < 400 && body != c.body || !strings.Contains(body, c.body) {
			t.Errorf("%s: got %d bytes %.80q, want %d bytes %.80q", c.name, len(body), body, len(c.body), c.body)
		}
		if r := got.Header().Get("Content-Range"); c.contentRange != "" && r != c.contentRange {
			t.Errorf("%s: got Content-Range %q, want %q", c.name, r, c.contentRange)
		}
		want := []string{tag, "public, max-age=31536000, immutable", "bytes", "application/zstd"}
		if c.status >= 400 {
			want = []string{"", "no-store", "", "application/json"}
		}
		var headers []string
		for _, name := range []string{"ETag", "Cache-Control", "Accept-Ranges", "Content-Type"} {
			headers = append(headers, got.Header().Get(name))
		}
		expect.NoDiff(t, cmp.Diff(want, headers), "%s: the headers differ", c.name)
	}
	s.doWith(t, http.Header{"If-None-Match": {tag}}, exchange{"GET", path, "", "", "", 304, ""})
	s.doWith(t, http.Header{"If-None-Match": {"x"}}, exchange{"GET", path, "", "", "", 400, "If-None-Match"})
	s.doWith(t, http.Header{"If-Match": {`"x"`}}, exchange{"GET", path, "", "", "", 412, "precondition"})
	for _, name := range []string{strings.Repeat("0", 64) + ".ndjson.zst", segment.SHA256, "x.ndjson.zst", ".ndjson.zst",
		"..%2f..%2flock.ndjson.zst", segment.SHA256 + ".ndjson.zst.new"} {
		s.do(t, exchange{"GET", "/api/2.5/snapshot/segments/" + name, "", "", "", 404, ""})
	}
	s.do(t, exchange{"GET", strings.Replace(path, "2.5", "2.4", 1), "", "", "", 404, "ask for the snapshot of version 2.5"})
}

// TestManySlowReadersAreBounded requests more segments than the service may send at the same time, and does not
// read the answers. The requests above the limit must get 503. When the service has cut the readers off, all places
// must be free again.
// Promises: segment-senders
func TestManySlowReadersAreBounded(t *testing.T) {
	expect.Equal(t, maxSegmentReaders, 512, "segments that are sent at once")
	s := newWithSnapshots(t)
	s.api.snapshots.readers = make(chan struct{}, 20)
	s.api.pace = httpserver.Pace{Bytes: 64 << 10, Within: time.Second, All: 3 * time.Second}
	s.list(t, lowID, `{"title":"`+randomText(3<<20)+`"}`)
	path := "/api/2.5/snapshot/segments/" + s.make(t).Segments[0].SHA256 + ".ndjson.zst"
	ask := s.slowly(t, 4096)
	var mu sync.Mutex
	var conns []net.Conn
	count := map[string]int{}
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			conn, status := ask(path), make([]byte, len("HTTP/1.1 200"))
			_, _ = io.ReadFull(conn, status)
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, conn)
			count[string(status)]++
		})
	}
	wg.Wait()
	expect.NoDiff(t, cmp.Diff(map[string]int{"HTTP/1.1 200": 20, "HTTP/1.1 503": 40}, count),
		"the answers to 60 slow readers differ")
	for range 20 { // takes each place, which is free only after the service has cut its reader off
		s.api.snapshots.readers <- struct{}{}
	}
	for _, conn := range conns {
		conn.Close()
	}
}

// randomText returns random letters, which compress badly.
func randomText(size int) string {
	random := rand.NewChaCha8([32]byte{})
	text := make([]byte, size/2)
	_, _ = random.Read(text) // Read never fails
	return hex.EncodeToString(text)
}
