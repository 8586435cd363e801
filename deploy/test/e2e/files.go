package e2e

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// testFiles gives documents files in each order of the three calls (docs/contract.md, "Files").
func testFiles(t *testing.T, a api) {
	for _, order := range []string{"register, document, upload", "register, upload, document", "upload, document"} {
		t.Run(order, func(t *testing.T) {
			f := &keptFile{api: a, content: "%PDF-1.4\n" + order, asset: a.publish(t, validAsset())}
			for step := range strings.SplitSeq(order, ", ") {
				switch step {
				case "register":
					f.register(t)
				case "upload":
					f.upload(t)
				default:
					f.name(t)
				}
			}
			f.check(t)
		})
	}
}

// keptFile is a file on its way into a document.
type keptFile struct {
	api
	content   string
	asset     created
	url       string // by which a document takes it
	uploadURL string // "": the file was not registered
	getURL    string
	document  string // path of the document
}

func (f *keptFile) hash() string {
	sum := md5.Sum([]byte(f.content))
	return "md5:" + hex.EncodeToString(sum[:])
}

// here returns an address of the registry at the server that the test asks.
func (f *keptFile) here(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return f.base + u.RequestURI()
}

// ask sends a request beside the versions, and returns the answer read to its end.
func (f *keptFile) ask(t *testing.T, method, to, key, contentType string, body io.Reader) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.here(to), body)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.SetBasicAuth(key, "")
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	direct := http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	resp, err := direct.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// is stops the test unless an answer has a status.
func is(t *testing.T, what string, resp *http.Response, text string, status int) {
	t.Helper()
	if resp.StatusCode != status {
		t.Fatalf("%s: got %d %s, want %d", what, resp.StatusCode, text, status)
	}
}

func (f *keptFile) register(t *testing.T) {
	t.Helper()
	body := fmt.Sprintf(`{"data":{"hash":%q}}`, f.hash())
	resp, text := f.ask(t, "POST", "/register", "broker", "application/json", strings.NewReader(body))
	is(t, "register", resp, text, http.StatusCreated)
	var got struct {
		Data      struct{ URL string }
		UploadURL string `json:"upload_url"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	f.url, f.uploadURL = got.Data.URL, got.UploadURL
	bare, _, _ := strings.Cut(f.url, "?")
	resp, text = f.ask(t, "GET", bare, "broker", "", nil)
	is(t, "a registered file", resp, text, http.StatusNoContent)
}

func (f *keptFile) upload(t *testing.T) {
	t.Helper()
	to := f.uploadURL
	if to == "" {
		to = "/upload"
	}
	resp, text := f.send(t, to)
	is(t, "upload", resp, text, http.StatusOK)
	var got struct {
		Data   struct{ URL, Hash string }
		GetURL string `json:"get_url"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Data.Hash != f.hash() {
		t.Errorf("got the hash %s, want %s", got.Data.Hash, f.hash())
	}
	f.url, f.getURL = got.Data.URL, got.GetURL
	if f.uploadURL != "" {
		resp, text = f.send(t, to)
		is(t, "upload again", resp, text, http.StatusForbidden)
	}
}

// send sends the file to an address.
func (f *keptFile) send(t *testing.T, to string) (*http.Response, string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", "../акт.pdf")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(part, f.content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return f.ask(t, "POST", to, "broker", w.FormDataContentType(), &b)
}

// name adds a document that names the file.
func (f *keptFile) name(t *testing.T) {
	t.Helper()
	wrong := validDocument().set("url", f.url).set("hash", "md5:"+strings.Repeat("0", 32))
	if got := f.as(t, "broker", f.asset, "POST", f.asset.of("documents"), wrong); got.status != http.StatusForbidden {
		t.Errorf("a document with another hash: got %d %s, want 403", got.status, got.text)
	}
	path, document := f.add(t, "broker", f.asset, "documents", validDocument().set("url", f.url).set("hash", f.hash()))
	bare, _, _ := strings.Cut(f.url, "?")
	if document["url"] != bare {
		t.Errorf("got the url %v, want %s without the signature", document["url"], bare)
	}
	f.document = path
}

// check reads the file as its document does, and waits until everybody may read it.
func (f *keptFile) check(t *testing.T) {
	t.Helper()
	bare, _, _ := strings.Cut(f.url, "?")
	key := bare[strings.LastIndex(bare, "/")+1:]
	resp, text := f.ask(t, "GET", "/api/"+f.current()+f.document+"?download="+key, "", "", nil)
	is(t, "download", resp, text, http.StatusFound)
	addresses := map[string]string{"its document": resp.Header.Get("Location"), "the upload": f.getURL}
	if addresses["its document"] == bare { // a mirror signs no address, so it may come before the file is public
		delete(addresses, "its document")
	}
	for what, to := range addresses {
		resp, text := f.ask(t, "GET", to, "", "", nil)
		is(t, "the address of "+what, resp, text, http.StatusOK)
		if text != f.content || resp.Header.Get("Content-Type") != "application/pdf" {
			t.Errorf("%s: got %q as %s, want the file", what, text, resp.Header.Get("Content-Type"))
		}
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, text := f.ask(t, "GET", bare, "", "", nil)
		if resp.StatusCode == http.StatusOK && text == f.content {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %d %s for 30 s, want the file that a document names", resp.StatusCode, text)
		}
	}
	sum := sha256.Sum256([]byte(f.content))
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		document := f.do(t, call{method: "GET", path: f.document}).must(t, 200).data()
		if document["sha256"] == hex.EncodeToString(sum[:]) && document["size"] == json.Number(fmt.Sprint(len(f.content))) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got the document %v for 30 s, want the sums of its file", document)
		}
	}
}

// keepFile gives a document of a new asset a file.
func (a api) keepFile(t *testing.T) *keptFile {
	t.Helper()
	f := &keptFile{api: a, content: "content", asset: a.publish(t, validAsset())}
	f.upload(t)
	f.name(t)
	return f
}

// reads reads the file at another registry, which has the data of the first.
func (f *keptFile) reads(t *testing.T, at api) {
	t.Helper()
	moved := *f
	moved.api = at
	bare, _, _ := strings.Cut(f.url, "?")
	resp, text := moved.ask(t, "GET", bare, "broker", "", nil)
	if resp.StatusCode != http.StatusOK || text != f.content {
		t.Errorf("got %d %s, want the file of a document", resp.StatusCode, text)
	}
}
