package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	registry "asset-registry.example/client"
	"asset-registry/deploy/test/rig/replicaset"
	"asset-registry/shared/logclient"
	"asset-registry/shared/logkey"
	"asset-registry/shared/needtest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/sleep"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

var drillFor = flag.Duration("drill", 40*time.Second, "how long members of a replica set and services are broken")

const (
	drillServices = 3
	drillWithin   = 20 * time.Second // a gateway answers before, whatever fails
	hookTries     = 50               // tries of the creation of a webhook
	drillEnd      = 3 * time.Minute  // longest time for the checks after the faults
)

// newDrill starts a replica set, and a fleet on it.
func newDrill(t *testing.T) (*drill, *fleet) {
	t.Helper()
	mongod := os.Getenv("MONGOD")
	if mongod == "" {
		needtest.Missing(t, "mongod", "MONGOD is not the path of a MongoDB server")
	}
	set := expect.Get(replicaset.Start(t.Context(), mongod))(t)
	t.Cleanup(func() { expect.Try(t, set.End()) })
	fleet := &fleet{bin: build(t), store: set.URI("drill"), dir: t.TempDir(), production: true,
		tokens: redistest.Start(t).URL()}
	fleet.start(t, drillServices)
	return &drill{set: set, done: map[string]int{}}, fleet
}

// TestADrillLosesNothing breaks members of a real replica set, asset services and the file service, while writers
// write through the gateways. Afterwards each acknowledged creation, change, file and token must be there. Followers,
// streams, readings of the whole list, records, the public log and a webhook must agree with the acknowledged writes.
// Meanwhile clients may get no failure but 503 with Retry-After.
func TestADrillLosesNothing(t *testing.T) {
	drill, fleet := newDrill(t)
	gates := urls(fleet.edges)
	s := &services{bases: gates, edges: gates, key: "broker", client: client(), within: drillWithin}
	h := newHistory(s, load{writers: 12, followers: 2, assets: 60, each: 5, lasts: *drillFor, pause: time.Second / 2,
		live: []taste{
			{[]way{hooks}, "", "*", 0}, {[]way{pages}, "_all_", "description", 0}, {[]way{polls}, "", "", 0},
			{[]way{events}, "", "*", 0}, {[]way{lines}, "_all_", "description", 0}, {ways, "_all_", "", briefly},
		}})
	s.watch = &watch{report: &h.report, statuses: map[int]int{}}
	s.client.Transport = s.watched(s.client.Transport)
	ctx, cancel := context.WithTimeout(t.Context(), *drillFor+drillEnd)
	defer cancel()
	faulty, endFaults := context.WithCancel(ctx)
	defer endFaults()
	var faults, writing sync.WaitGroup
	var errs [2]error
	chaos := chaos{}
	for i, breaks := range []func() error{
		func() error { return drill.run(faulty) }, func() error { return fleet.breakServices(faulty, &chaos) },
	} {
		faults.Go(func() {
			if errs[i] = breaks(); errs[i] != nil {
				cancel() // without the broken part, the load would never end
			}
		})
	}
	log, files := fleet.newLog(t, h), &keeper{history: h}
	writing.Go(func() { log.follow(faulty) })
	writing.Go(func() { files.write(ctx, faulty) })
	r := h.run(ctx, func() {
		endFaults()
		faults.Wait()
		writing.Wait()
		time.Sleep(drillWithin) // until requests of the faults have their answers, and members know who leads
		s.watch.calm.Store(true)
		if err := errors.Join(errs[:]...); err != nil {
			t.Errorf("%v; the end of the output: %s; of the members: %s", err, fleet.tail(),
				drill.set.LastWords())
		}
		h.checkTokens(ctx)
	})
	files.check(ctx)
	log.check(ctx)
	print(fmt.Sprint(drillServices), r, chaos)
	fmt.Printf("%v; %d files, %d leaves; faults of members: %v\n", s.watch, len(files.kept), log.size, drill.done)
	fleet.judge(t, r, int(drillFor.Seconds()/10))
	if len(files.kept) == 0 || drill.done["rollback"] == 0 && *drillFor > time.Minute {
		t.Errorf("got %d files and %d rollbacks, want some", len(files.kept), drill.done["rollback"])
	}
	if ctx.Err() != nil {
		t.Errorf("got no end of the checks within %v; the end of the output: %s", drillEnd, fleet.tail())
	}
}

// checkTokens changes each asset with the token that its creation gave. It waits until the faults have passed.
func (h *history) checkTokens(ctx context.Context) {
	for _, a := range slices.Clone(h.assets) {
		for ctx.Err() == nil && !h.change(ctx, a) {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// keeper uploads files, and remembers those whose upload was acknowledged.
type keeper struct {
	*history
	kept []kept
}

// kept is a file, the address that its upload gave, and the path of its document; "" for a file without a document.
type kept struct{ text, address, document, token string }

// shelf publishes an asset for documents. The other checkers accept all of its changes.
func (k *keeper) shelf(ctx context.Context) (a owned) {
	for ok := false; !ok && ctx.Err() == nil; {
		a, ok = k.draft(ctx, "")
	}
	k.mu.Lock()
	k.unknown["new"], k.doubts[a.id] = a.id, []int64{0}
	k.mu.Unlock()
	pending := map[string]any{"data": map[string]any{"status": "pending"}}
	to := "/api/2.5/assets/" + a.id
	for k.services.call(ctx, "PATCH", to, a.token, pending, &answer{}) != http.StatusOK && ctx.Err() == nil {
		time.Sleep(k.load.pause)
	}
	return a
}

// write uploads files until the faults end. Every other file comes with a document.
func (k *keeper) write(ctx, faulty context.Context) {
	shelf := k.shelf(ctx)
	for n := 0; sleep.For(faulty, randtest.N(2*k.load.pause)); n++ {
		f := kept{text: fmt.Sprintf("%%PDF-1.4\n%d\n%s", n, strings.Repeat("x", randtest.IntN(100_000)))}
		to, document := "/upload", "/api/2.5/assets/"+shelf.id+"/documents"
		if n%2 == 0 {
			to, f.token = document, shelf.token
		}
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		if to == document {
			w.WriteField("documentType", "notice") // a bytes.Buffer takes all
		}
		part, _ := w.CreateFormFile("file", "a.pdf")
		io.WriteString(part, f.text)
		w.Close()
		var got struct {
			Data   struct{ ID, URL string }
			GetURL string `json:"get_url"`
		}
		status := k.services.send(ctx, "POST", to, f.token, w.FormDataContentType(), form.Bytes(), &got)
		if f.address = got.GetURL; to == document {
			f.address, f.document = got.Data.URL, document+"/"+got.Data.ID
		}
		if status == http.StatusCreated || status == http.StatusOK {
			k.kept = append(k.kept, f)
		}
	}
}

// check reads each file, and its document.
func (k *keeper) check(ctx context.Context) {
	read := func(path, token string, into any) (status int) {
		for status = http.StatusServiceUnavailable; status == http.StatusServiceUnavailable && ctx.Err() == nil; {
			status = k.services.call(ctx, "GET", path, token, nil, into)
		}
		return status
	}
	for _, f := range k.kept {
		var got []byte
		u, err := url.Parse(f.address)
		if err != nil {
			k.report.violation(&k.report.other, "got the address %q of a file: %v", f.address, err)
			continue
		}
		status := read(u.RequestURI(), "", &got)
		if string(got) != f.text {
			k.report.violation(&k.report.lost, "the file %s: got %d and %d bytes, want the %d bytes of its upload", f.address,
				status, len(got), len(f.text))
		}
		var document struct{ Data struct{ URL string } }
		if f.document == "" {
			continue
		}
		status = read(f.document, f.token, &document)
		if document.Data.URL != f.address {
			k.report.violation(&k.report.lost, "the document %s: got %d and the address %q, want %q", f.document, status,
				document.Data.URL, f.address)
		}
	}
}

// logReader verifies the public log again and again. Each checkpoint must continue the one before.
type logReader struct {
	*history
	translog.Verifier
	source *logclient.Source
	size   int64
}

func (f *fleet) newLog(t *testing.T, h *history) *logReader {
	t.Helper()
	keys := expect.Get(logkey.Read(filepath.Join(f.dir, "log.key")))(t)
	policy, err1 := translog.LogPolicy(keys[0].Public())
	source, err2 := logclient.NewSource(h.services.edges[0]+"/log", h.services.client.Transport)
	expect.OK(t, errors.Join(err1, err2))
	return &logReader{history: h, Verifier: translog.Verifier{Policy: policy}, source: source}
}

// wrong are the causes of errors about a log that is not as it was promised.
var wrong = []error{translog.ErrTampered, translog.ErrConsistency, translog.ErrOrder, translog.ErrLeaf}

// verify verifies the log, and remembers its checkpoint.
func (l *logReader) verify(ctx context.Context) {
	signed, err := l.Verify(ctx, l.source)
	if slices.ContainsFunc(wrong, func(cause error) bool { return errors.Is(err, cause) }) {
		l.report.violation(&l.report.other, "the public log: %v", err)
	}
	if err == nil {
		l.Remembered, l.size = signed.Checkpoint, signed.Size
	}
}

// follow verifies the log until ctx is done.
func (l *logReader) follow(ctx context.Context) {
	for sleep.For(ctx, 2*time.Second) {
		l.verify(ctx)
	}
}

// check waits until the log covers all changes. Each acknowledged change of a public asset must have its leaf. Each
// leaf must belong to such a change, or to one without a clear answer.
func (l *logReader) check(ctx context.Context) {
	last, want := int64(0), map[int64]string{}
	for _, a := range l.acks {
		at, err := time.Parse(time.RFC3339Nano, a.modified)
		if err != nil {
			l.report.violation(&l.report.other, "%s: got the position %q: %v", a.id, a.modified, err)
		} else if l.lists("", a.id) {
			want[at.UnixMicro()] = a.id
			last = max(last, at.UnixMicro())
		}
	}
	leaves, newest := map[int64]string{}, int64(0)
	l.Leaf = func(_ int64, leaf translog.Leaf) error {
		leaves[leaf.Position], newest = leaf.Asset, leaf.Position
		return nil
	}
	for end := time.Now().Add(settling); newest < last && time.Now().Before(end); time.Sleep(time.Second) {
		l.verify(ctx)
	}
	for at, id := range want {
		if leaves[at] != id {
			l.report.violation(&l.report.missing, "the public log: got no leaf of %s at %d, want one", id, at)
		}
	}
	for at, id := range leaves {
		if want[at] != id && len(l.doubts[id]) == 0 {
			l.report.violation(&l.report.extra, "the public log: got a leaf of %s at %d, want none", id, at)
		}
	}
	l.report.count(0, len(l.acks))
}

// receive creates a webhook, and takes its messages until the last entry has come or ctx is done. A message may repeat
// entries.
func (l *live) receive(ctx context.Context) {
	var mu sync.Mutex
	var secret registry.Secret
	last := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || secret == "" || ctx.Err() != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		m, err := registry.ReadMessage(secret, r.Header, body)
		if err != nil {
			l.report.violation(&l.report.other, "a webhook: got %.200q: %v", body, err)
		}
		if m.Type == registry.WebhookChallenge {
			fmt.Fprintf(w, `{"challenge":%q}`, m.Challenge)
			return
		}
		before := l.ended
		l.from, l.last = l.at, ""
		for _, e := range m.Entries {
			l.take(hooks, message{ID: e.ID, DateModified: string(e.DateModified), Description: e.Description,
				Items: make([]json.RawMessage, len(e.Items))})
		}
		l.connections++
		if l.ended && !before {
			close(last)
		}
	}))
	defer server.Close()
	admin, err := registry.New(registry.Config{URL: l.services.edges[0], Key: "administrator",
		Transport: l.services.client.Transport, Retry: registry.Retry{Tries: hookTries}})
	if err != nil {
		panic(err) // the test itself is wrong
	}
	hook, err := admin.CreateWebhook(ctx, registry.WebhookSettings{URL: server.URL, Mode: l.mode, OptFields: l.fields,
		Offset: registry.Timestamp(l.begun.UTC().Format("2006-01-02T15:04:05.000000-07:00"))})
	if err != nil {
		l.report.violation(&l.report.other, "create a webhook: %v", err)
		return
	}
	mu.Lock()
	secret = hook.Access.Secret
	mu.Unlock()
	select {
	case <-last:
	case <-ctx.Done():
	}
}
