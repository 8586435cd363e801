package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/upstream"
)

// TestFormsOfForeignPages sends the headers that browsers send with forms (docs/files.md, D9). Forms from pages of
// foreign origins must be refused. An empty origin in the settings must not admit requests without Origin.
func TestFormsOfForeignPages(t *testing.T) {
	const own, named, foreign = "http://example.com", "https://broker.example", "https://foreign.example"
	_, engine := open(t, http.HandlerFunc(ok), func(c *Config) { c.Settings.CORSOrigins = []string{"*", named, ""} })
	for n, c := range []struct {
		origin, site string
		isRefused    bool
	}{
		{"", "", false}, {own, "same-origin", false}, {"", "none", false}, {named, "cross-site", false},
		{foreign, "cross-site", true}, {foreign, "", true}, {"null", "cross-site", true}, {"", "cross-site", true},
		{"", "same-site", true}, {own + ".foreign.example", "", true},
	} {
		for k, path := range []string{"/register", "/upload", "/upload/x"} {
			got := send(engine, "POST", path, "Origin", c.origin, "Sec-Fetch-Site", c.site,
				"Authorization", fmt.Sprintf("Bearer key-%d-%d", n, k))
			if (got.Code == http.StatusForbidden) != c.isRefused {
				t.Errorf("%s of %q, %q: got %d %s, want refused: %t", path, c.origin, c.site, got.Code, got.Body, c.isRefused)
			}
		}
		if got := send(engine, "GET", "/get/x", "Origin", c.origin, httpserver.ClientHeader, fmt.Sprintf("10.0.0.%d", n)); got.Code != 200 {
			t.Errorf("reading of %q: got %d, want 200", c.origin, got.Code)
		}
	}
}

func TestUploadsOfABrokerAtOnce(t *testing.T) {
	a, engine := open(t, http.HandlerFunc(ok), nil)
	for range brokerUploads {
		if got := a.uploads.Enter("b"); got != concurrency.Admitted {
			t.Fatalf("got %d, want an upload admitted", got)
		}
	}
	got := send(engine, "POST", "/upload", "Authorization", "Bearer key")
	if got.Code != http.StatusTooManyRequests || !strings.Contains(got.Body.String(), "uploads under way") {
		t.Errorf("got %d %s, want 429", got.Code, got.Body)
	}
}

// TestAnUploadStreams sends each piece of a file only after the file service has read the piece before. A
// gateway that kept the whole body would wait for ever.
func TestAnUploadStreams(t *testing.T) {
	const pieces, size = 50, 100 << 10 // in all, more bytes than MaxBody allows for other bodies
	read := make(chan int)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			n, err := io.ReadFull(r.Body, make([]byte, size))
			if err != nil {
				break
			}
			read <- n
		}
		fmt.Fprintf(w, "%d %s", r.ContentLength, r.Header.Get("Authorization"))
	}))
	defer service.Close()
	for n, remote := range []bool{false, true} {
		_, engine := open(t, service.Config.Handler, func(c *Config) {
			if remote {
				signer, err := identity.NewSigner(c.Secrets, time.Now)
				expect.OK(t, err)
				pool, err := upstream.New(upstream.Config{
					Name: "filesvc", URLs: []string{service.URL}, Log: c.Log, Meter: c.Meter,
				})
				expect.OK(t, err)
				t.Cleanup(pool.Close)
				c.Files = proxy.Remote(pool, signer).Patient()
			}
		})
		edge := httptest.NewServer(engine)
		from, to := io.Pipe()
		done := make(chan string)
		go func() {
			q, _ := http.NewRequest("POST", edge.URL+"/upload", from)
			q.ContentLength = pieces * size
			q.Header.Set("Authorization", fmt.Sprintf("Bearer key-%d", n))
			resp, err := http.DefaultClient.Do(q)
			if err != nil {
				done <- err.Error()
				return
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			done <- string(text)
		}()
		for range pieces {
			if _, err := to.Write(make([]byte, size)); err != nil {
				t.Fatalf("got %v and the answer %s, want that the body is read", err, <-done)
			}
			select {
			case <-read:
			case answer := <-done:
				t.Fatalf("remote %t: got the answer %s, want that the body is read", remote, answer)
			}
		}
		to.Close()
		expect.Equal(t, <-done, fmt.Sprintf("%d ", pieces*size), "remote %t", remote)
		edge.Close()
	}
}

// TestFormsOfDocuments sends forms to the paths of documents. The file service must get the files, and the
// asset service the documents.
func TestFormsOfDocuments(t *testing.T) {
	const document = `{"data":{"title":"a.pdf","url":"https://registry.example/get/1"}}`
	refused := false
	files := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil || string(text) != "the form" || r.Method != http.MethodPost || r.URL.Path != "/forms" {
			t.Errorf("the file service got %s %s of %q, %v, want POST of the form", r.Method, r.URL.Path, text, err)
		}
		w.Header().Set("Content-Type", "application/json")
		if refused {
			w.WriteHeader(http.StatusInsufficientStorage)
			io.WriteString(w, `{"status":"error","errors":[{"location":"body","name":"file","description":"no room"}]}`)
			return
		}
		io.WriteString(w, document)
	})
	var got []string
	assets := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"),
			r.Header.Get("X-Access-Token"), text))
		ok(w, r)
	})
	_, engine := open(t, assets, func(c *Config) {
		signer, err := identity.NewSigner(c.Secrets, time.Now)
		expect.OK(t, err)
		c.Files = proxy.Local(files, signer)
	})
	sent := 0
	form := func(method, path string, headers ...string) *httptest.ResponseRecorder {
		sent++
		r := httptest.NewRequest(method, path, strings.NewReader("the form"))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		// Each form has a new key, because a key may write only once a minute.
		r.Header.Set("Authorization", fmt.Sprintf("Bearer key-%d", sent))
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		engine.ServeHTTP(w, r)
		return w
	}
	for _, c := range []struct {
		method, path string
		headers      []string
		refused      bool
		status       int
		want         string // the request that reaches the asset service
	}{
		{"POST", "/api/2.5/assets/1/documents?acc_token=t", nil, false, 200,
			"POST /api/2.5/assets/1/documents application/json t " + document},
		{"PUT", "/api/2.4/assets/1/documents/2", nil, false, 200,
			"PUT /api/2.4/assets/1/documents/2 application/json  " + document},
		{"POST", "/api/2.5/assets/1/documents", nil, true, 507, ""},
		{"POST", "/api/2.5/assets/1/documents", []string{"Origin", "https://foreign.example"}, false, 403, ""},
		{"PATCH", "/api/2.5/assets/1/documents/2", nil, false, 415, "HEAD"},
		{"POST", "/api/2.5/assets/1/items", nil, false, 415, "HEAD"},
	} {
		got, refused = nil, c.refused
		w := form(c.method, c.path, c.headers...)
		if all := strings.Join(got, "; "); w.Code != c.status || !strings.HasPrefix(all, c.want) || c.want == "" && all != "" {
			t.Errorf("%s %s: got %d %s, and %q at the asset service, want %d and %q",
				c.method, c.path, w.Code, w.Body, all, c.status, c.want)
		}
	}
}

// TestTheAnswerToAFormIsBounded writes the largest answer that is kept, and then one byte more. Writing the
// last byte must fail.
func TestTheAnswerToAFormIsBounded(t *testing.T) {
	k := &kept{header: http.Header{}}
	if n, err := k.Write(make([]byte, mostKept)); n != mostKept || err != nil {
		t.Fatalf("got %d, %v; want %d bytes kept", n, err, mostKept)
	}
	if n, err := k.Write([]byte("x")); n != 0 || err == nil || k.body.Len() != mostKept {
		t.Errorf("got %d, %v with %d bytes kept, want an error and %d", n, err, k.body.Len(), mostKept)
	}
}

// TestARemovalIsAudited removes files. If the file service answers that the caller has removed the file, the
// audit log must have an entry before the client gets an answer.
func TestARemovalIsAudited(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	for n, c := range []struct {
		name   string
		status int
		first  bool // the file service answers that the caller has removed the file
		away   bool // the auth service does not answer
		want   int
		noted  int
	}{
		{"a removal", 200, true, false, 200, 1},
		{"somebody else's", 200, false, false, 200, 0},
		{"a refusal", 403, true, false, 403, 0},
		{"without an entry", 200, true, true, 503, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			by := "k" + authapi.Hash(fmt.Sprint("key-", n))
			removedBy := by
			if !c.first {
				removedBy = "k9"
			}
			files := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				if c.status != http.StatusOK {
					io.WriteString(w, `{"status":"error","errors":[{"location":"url","name":"permission","description":"no"}]}`)
					return
				}
				fmt.Fprintf(w, `{"data":{"id":%q,"sha256":"s","size":7,"removed_by":%q,"reason":"a court"}}`, id, removedBy)
			})
			var noted []authapi.NoteRemovalRequest
			auth := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path != authapi.NoteRemovalPath {
					anyKey(w, r)
					return
				}
				var asked authapi.NoteRemovalRequest
				expect.Try(t, json.NewDecoder(r.Body).Decode(&asked))
				noted = append(noted, asked)
				if c.away {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				io.WriteString(w, "{}")
			})
			_, engine := open(t, http.HandlerFunc(ok), func(config *Config) {
				signer, err := identity.NewSigner(config.Secrets, time.Now)
				expect.OK(t, err)
				config.Files = proxy.Local(files, signer)
				config.Auth = authapi.NewClient(httpserver.InProcess(auth), signer, "gateway")
			})
			got := send(engine, "DELETE", "/get/"+id+"?reason=x", "Authorization", fmt.Sprintf("Bearer key-%d", n),
				httpserver.ClientHeader, "192.0.2.1")
			if got.Code != c.want || len(noted) != c.noted {
				t.Fatalf("got %d %s and the entries %+v, want %d and %d entries", got.Code, got.Body, noted, c.want, c.noted)
			}
			want := authapi.NoteRemovalRequest{
				File: id, Reason: "a court", SHA256: "s", Size: 7, Broker: "b", KeyID: by, From: "192.0.2.1",
			}
			if c.noted > 0 && noted[0] != want {
				t.Errorf("got the entry %+v, want %+v", noted[0], want)
			}
		})
	}
}
