package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/filesvc"
	"asset-registry/gateway"
	"asset-registry/searchsvc"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/s3test"
	"asset-registry/shared/testing/expect"
)

// victims are the stores and the services that a registry can lose.
var victims = []string{"mongodb", "redis", "limits", "bucket", "assetsvc", "authsvc", "filesvc", "searchsvc"}

// whole is a registry of all services, each with a server of its own. Proxies stand before the stores and the services.
// A whole can be started several times on the same data and addresses.
type whole struct {
	t      *testing.T
	dir    string
	stores map[string]string // addresses of the stores
	mongo  string            // address of the database
	wires  map[string]*wire
	addrs  map[string]string // addresses of the services themselves
	client *http.Client
	stop   func()

	asset, file        string // what the first start made: an asset that stays as it is, and a file
	grows, token, part string // an asset that gets documents with each try, its owner token and its first document
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	w := &whole{t: t, dir: t.TempDir(), wires: map[string]*wire{}, addrs: map[string]string{}}
	w.client = &http.Client{Timeout: 40 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	w.stores = map[string]string{
		"redis": redistest.Start(t).Addr, "limits": redistest.Start(t).Addr,
		"bucket": s3test.Start(t, false, "files").Addr,
	}
	control := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	wireAddr := freeAddr(t)
	w.mongo, w.stores["mongodb"] = mongotest.Through(t, mongotest.Start(t).URI(t, "whole"), wireAddr)
	for _, name := range append([]string{"gateway"}, victims...) {
		to, addr := w.stores[name], freeAddr(t)
		if to == "" {
			to = freeAddr(t)
			w.addrs[name] = to
		}
		if name == "mongodb" {
			addr = wireAddr
		}
		w.wires[name] = &wire{Proxy: toxiproxy.NewProxy(control, name, addr, to)}
		t.Cleanup(w.wires[name].Stop)
	}
	return w
}

// at returns the URL at which others reach a service or a store through its proxy.
func (w *whole) at(name string) string { return "http://" + w.wires[name].Listen }

// start starts all services. Every proxy is open, but not the one of the argument `away`. No service may fail to start.
func (w *whole) start(away string) {
	w.t.Helper()
	for name, wire := range w.wires {
		if name != away {
			wire.open(w.t)
		}
	}
	ctx, log, base := w.t.Context(), slog.New(slog.DiscardHandler), w.at("gateway")
	var closers []func()
	serve := func(name string, service interface {
		Handler() http.Handler
		Close() error
	}, err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatalf("%s does not start without %q: %v", name, away, err)
		}
		listener, err := net.Listen("tcp", w.addrs[name])
		expect.OK(w.t, err)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: service.Handler()}}
		server.Start()
		closers = append(closers, func() {
			server.CloseClientConnections()
			server.Close()
			if err := service.Close(); err != nil && away == "" {
				w.t.Errorf("close %s: %v", name, err)
			}
		})
	}
	auth, err := authsvc.New(ctx, authsvc.Config{
		Store: "redis://" + w.wires["redis"].Listen, Sandbox: true, Secrets: secrets, Log: log,
	})
	serve("authsvc", auth, err)
	assets, err := assetsvc.New(ctx, assetsvc.Config{
		Store: w.mongo, AuthURLs: []string{w.at("authsvc")}, FilesURLs: []string{w.at("filesvc")}, BaseURL: base,
		Secrets: secrets, Sandbox: true, StoreTimeout: timeout - time.Second, StoreLease: lease, Timeout: timeout, Log: log,
	})
	serve("assetsvc", assets, err)
	files, err := filesvc.New(ctx, filesvc.Config{
		Store: w.mongo, Bytes: "s3+" + w.at("bucket") + "/files", Spool: w.dir, AssetsURLs: []string{w.at("assetsvc")},
		BaseURL: base, Secrets: secrets, Timeout: timeout, Log: log,
	})
	serve("filesvc", files, err)
	search, err := searchsvc.New(ctx, searchsvc.Config{
		Of: base, Dir: filepath.Join(w.dir, "search"), Log: log,
	})
	serve("searchsvc", search, err)
	edge, err := gateway.New(ctx, gateway.Config{
		AssetsURLs: []string{w.at("assetsvc")}, AuthURLs: []string{w.at("authsvc")},
		FilesURLs: []string{w.at("filesvc")}, SearchURLs: []string{w.at("searchsvc")},
		Secrets: secrets, BaseURL: base, Log: log,
		TrustedProxies: clientaddr.Proxies{netip.MustParsePrefix("127.0.0.0/8")},
		KeyTTL:         time.Millisecond, // so that no answer depends on how long ago a key was used
		Limits:         gateway.Limits{Redis: "redis://" + w.wires["limits"].Listen}.OrDefault(false),
	})
	serve("gateway", edge, err)
	w.stop = func() {
		edge.Drain()
		for i := range closers {
			closers[len(closers)-1-i]()
		}
		for _, wire := range w.wires {
			wire.Stop()
		}
	}
}

// answered is an answer, or a failure to get one.
type answered struct {
	status     int
	retryAfter string
	text       string
}

func (w *whole) ask(r row) answered {
	r.path = strings.NewReplacer(":id", w.asset, ":file", w.file, ":grows", w.grows, ":part", w.part).Replace(r.path)
	kind, body := r.kind, []byte(r.body)
	if r.body == formBody {
		kind, body = form()
	}
	q, err := http.NewRequestWithContext(w.t.Context(), r.method, w.at("gateway")+r.path, bytes.NewReader(body))
	expect.OK(w.t, err)
	if kind == "" {
		kind = "application/json"
	}
	q.Header.Set("Content-Type", kind)
	q.Header.Set("X-Access-Token", w.token)
	q.Header.Set("X-Forwarded-For", r.client)
	if r.key != "" {
		q.SetBasicAuth(r.key, "")
	}
	resp, err := w.client.Do(q)
	if err != nil {
		return answered{text: err.Error()}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answered{text: fmt.Sprintf("status %d, then %v", resp.StatusCode, err)}
	}
	return answered{resp.StatusCode, resp.Header.Get("Retry-After"), string(text)}
}

// formBody stands for the body of an upload.
const formBody = "a form"

// form returns a form with a file, and its content type.
func form() (kind string, body []byte) {
	var b bytes.Buffer
	f := multipart.NewWriter(&b)
	part, err := f.CreateFormFile("file", "a.pdf")
	if err == nil {
		_, err = io.WriteString(part, "%PDF-1.4\nfaults")
	}
	if err := errors.Join(err, f.WriteField("documentType", "notice"), f.Close()); err != nil {
		panic(err) // a bytes.Buffer does not fail
	}
	return f.FormDataContentType(), b.Bytes()
}

// fill makes two assets with a document that names a file.
func (w *whole) fill() {
	w.t.Helper()
	for range 2 {
		w.asset = w.grows
		create := row{method: "POST", path: "/api/2.5/assets", key: "broker", body: fmt.Sprintf(assetText, "faults")}
		made := w.must(create, 201)
		var asset answer
		w.decode(made, &asset)
		w.grows, w.token = asset.Data.ID, asset.Access.Token
		w.must(row{method: "PATCH", path: "/api/2.5/assets/:grows", key: "broker", body: `{"data":{"status":"pending"}}`}, 200)
		add := row{method: "POST", path: "/api/2.5/assets/:grows/documents", key: "broker", body: formBody}
		added := w.must(add, 201)
		var document struct{ Data struct{ ID, URL string } }
		w.decode(added, &document)
		w.part = document.Data.ID
		w.file = document.Data.URL[strings.LastIndex(document.Data.URL, "/")+1:]
	}
	w.must(row{method: "GET", path: "/get/:file"}, 200)
	w.must(row{method: "GET", path: "/en/assets/:id"}, 200)
}

func (w *whole) decode(text string, into any) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
}

// must repeats a request for a minute at most, until its answer has the wanted status. It returns the body.
func (w *whole) must(r row, want int) string {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		got := w.ask(r)
		if got.status == want {
			return got.text
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s %s: got %+v, want %d", r.method, r.path, got, want)
		}
	}
}
