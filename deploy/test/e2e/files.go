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
	"reflect"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/described"
)

// testFiles gives files to documents. It makes the calls (register, upload, add the document) in each possible order.
// After the calls, everybody must be able to read the file (docs/contract.md, "Files").
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
	t.Run("of a test asset", func(t *testing.T) {
		f := &keptFile{api: a, content: "%PDF-1.4\ntest", asset: a.publish(t, validAsset().set("mode", "test"))}
		f.upload(t)
		f.name(t)
		f.check(t)
	})
	t.Run("forms bring the file of a document", func(t *testing.T) { testFileForms(t, a) })
	t.Run("bytes that come late are a change", func(t *testing.T) { testLateBytes(t, a) })
	t.Run("a file of another broker", func(t *testing.T) { testFileOfAnother(t, a) })
	t.Run("illustrations have pictures", func(t *testing.T) { testPictures(t, a) })
	t.Run("a file is taken down", func(t *testing.T) { testTakeDown(t, a) })
}

// testFileForms adds a document together with its file. Then it replaces the document by a new version with another
// file. Everybody must be able to read each file.
func testFileForms(t *testing.T, a api) {
	asset := a.publish(t, validAsset())
	to := "/api/" + a.current() + asset.of("documents")
	for _, c := range []struct {
		method string
		status int
	}{{"POST", http.StatusCreated}, {"PUT", http.StatusOK}} {
		f := &keptFile{api: a, content: "%PDF-1.4\n" + c.method, asset: asset}
		contentType, form := f.form(t, "documentType", "notice")
		resp, body := f.ask(t, c.method, to+"?acc_token="+asset.token, "broker", contentType, form)
		is(t, c.method+" of a form", resp, body, c.status)
		var got struct{ Data struct{ ID, URL string } }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		f.url, f.document = got.Data.URL, asset.of("documents")+"/"+got.Data.ID
		f.check(t)
		to = "/api/" + a.current() + f.document
	}
}

// testLateBytes uploads a file after its document was added. The upload changes the asset, so the feed must list it
// again.
func testLateBytes(t *testing.T, a api) {
	f := &keptFile{api: a, content: "late", asset: a.publish(t, validAsset())}
	f.register(t)
	f.name(t)
	before := text(a.read(t, f.asset.id).must(t, 200).data()["dateModified"])
	f.upload(t)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		follower := newFollower(a, false, before)
		follower.catchUp(t)
		for e := range follower.seen {
			if e.id == f.asset.id && e.modified > before {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("got nothing of the asset in the feed after %s for 30 s, want the change by its file", before)
		}
	}
}

// testFileOfAnother checks how other brokers can use a file that no document refers to yet. These brokers may read the
// file only at the address that the upload returned. They may add the file to a document only with its signed URL.
func testFileOfAnother(t *testing.T, a api) {
	got := a.do(t, call{method: "POST", path: "/assets", key: "broker3", body: data(validAsset())}).must(t, 201)
	theirs := created{got, text(got.data()["id"]), text(at(got.json["access"], "token"))}
	a.move(t, "broker3", theirs, "pending").must(t, 200)
	f := &keptFile{api: a, content: "secret until it is named"}
	f.upload(t)
	bare, signature, _ := strings.Cut(f.url, "?")
	_, toRead, _ := strings.Cut(f.getURL, "?")
	another := &keptFile{api: a, content: "another"}
	another.upload(t)
	_, foreign, _ := strings.Cut(another.getURL, "?")
	late := strings.Replace(toRead, "Expires=", "Expires=1", 1)
	for _, c := range []struct{ what, query, key string }{
		{"nobody", "", ""}, {"another broker", "", "broker3"}, {"the signature to bind", signature, ""},
		{"the signature of another file", foreign, ""}, {"another time", late, ""},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			resp, text := f.ask(t, method, bare+"?"+c.query, c.key, "", nil)
			is(t, c.what, resp, text, http.StatusForbidden)
		}
	}
	resp, text := f.ask(t, "GET", f.getURL, "", "", nil)
	is(t, "the address of the upload", resp, text, http.StatusOK)

	document := validDocument().set("url", bare).set("hash", f.hash())
	a.as(t, "broker3", theirs, "POST", theirs.of("documents"), document).fails(t, 403, "body/url")
	forged := bare + "?" + strings.Replace(signature, "Signature=", "Signature=A", 1)
	a.as(t, "broker3", theirs, "POST", theirs.of("documents"), document.set("url", forged)).fails(t, 403, "body/url")
	a.as(t, "broker3", theirs, "POST", theirs.of("documents"), document.set("url", f.url)).must(t, 201)
}

// testTakeDown takes down the file of a document. Only the administrator may do this, and the document must stay as
// it was.
func testTakeDown(t *testing.T, a api) {
	f := &keptFile{api: a, content: "%PDF-1.4\nunlawful", asset: a.publish(t, validAsset())}
	f.upload(t)
	f.name(t)
	f.check(t)
	named := f.do(t, call{method: "GET", path: f.document}).must(t, 200).data()
	bare, _, _ := strings.Cut(f.url, "?")
	resp, text := f.ask(t, "DELETE", bare+"?reason=x", "broker", "", nil)
	is(t, "its broker removes it", resp, text, http.StatusForbidden)
	f.takeDown(t)
	f.isGone(t)
	if got := f.do(t, call{method: "GET", path: f.document}).must(t, 200).data(); !reflect.DeepEqual(got, named) {
		t.Errorf("got the document %v, want it as before: %v", got, named)
	}
}

// takeDown takes the file down as the administrator.
func (f *keptFile) takeDown(t *testing.T) {
	t.Helper()
	bare, _, _ := strings.Cut(f.url, "?")
	resp, text := f.ask(t, "DELETE", bare+"?reason=a+court+has+ordered+it", "administrator", "", nil)
	is(t, "remove", resp, text, http.StatusOK)
}

// isGone fails the test unless the file was removed and the registry refuses to store its bytes again.
func (f *keptFile) isGone(t *testing.T) {
	t.Helper()
	bare, _, _ := strings.Cut(f.url, "?")
	for _, c := range []struct{ to, key string }{{bare, ""}, {bare, "broker"}, {f.getURL, ""}} {
		for _, method := range []string{"GET", "HEAD"} {
			resp, text := f.ask(t, method, c.to, c.key, "", nil)
			is(t, method+" of a removed file", resp, text, http.StatusGone)
		}
	}
	resp, text := f.ask(t, "GET", f.base+"/get/removed?limit=1000", "", "", nil)
	if is(t, "the list of removed files", resp, text, http.StatusOK); !strings.Contains(text, `"id":"`+f.id()+`"`) {
		t.Errorf("got the removed files %s, want %s among them", text, f.id())
	}
	resp, text = f.send(t, "/upload")
	is(t, "the same bytes again", resp, text, http.StatusForbidden)
}

// id returns the id of the file.
func (f *keptFile) id() string {
	bare, _, _ := strings.Cut(f.url, "?")
	return bare[strings.LastIndex(bare, "/")+1:]
}

// keptFile is a file that the test uploads and adds to a document.
type keptFile struct {
	api
	content   string
	asset     created
	url       string // URL under which a document refers to the file
	uploadURL string // "" if the file was not registered
	getURL    string // "" if the file was uploaded with a form
	document  string // path of the document
}

func (f *keptFile) hash() string {
	sum := md5.Sum([]byte(f.content))
	return "md5:" + hex.EncodeToString(sum[:])
}

// The method `here` returns an address with the registry's host replaced by the host that the test asks.
func (f *keptFile) here(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return f.base + u.RequestURI()
}

// ask sends a request to a path outside the API versions. It returns the answer and its whole body.
func (f *keptFile) ask(t *testing.T, method, to, key, contentType string, body io.Reader) (*http.Response, string) {
	t.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = io.ReadAll(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, f.here(to), bytes.NewReader(sent))
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
	checkDescribed(t, described.Exchange{
		Request: req, Sent: sent, Status: resp.StatusCode, Header: resp.Header, Body: text,
	})
	return resp, string(text)
}

// The function `is` stops the test if the answer does not have the status.
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

// send uploads the file to an address.
func (f *keptFile) send(t *testing.T, to string) (*http.Response, string) {
	t.Helper()
	contentType, form := f.form(t)
	return f.ask(t, "POST", to, "broker", contentType, form)
}

// form returns the content type and the body of a form with the file. The argument `fields` has the names of
// further fields, each followed by its text.
func (f *keptFile) form(t *testing.T, fields ...string) (contentType string, body io.Reader) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		w.WriteField(fields[i], fields[i+1])
	}
	part, err := w.CreateFormFile("file", "../акт.pdf")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(part, f.content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), &b
}

// name adds a document that refers to the file.
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

// check reads the file under the addresses that its document gives, and waits until everybody may read it.
func (f *keptFile) check(t *testing.T) {
	t.Helper()
	bare, _, _ := strings.Cut(f.url, "?")
	resp, text := f.ask(t, "GET", "/api/"+f.current()+f.document+"?download="+f.id(), "", "", nil)
	is(t, "download", resp, text, http.StatusFound)
	addresses := map[string]string{"its document": resp.Header.Get("Location")}
	if f.getURL != "" {
		addresses["the upload"] = f.getURL
	}
	if addresses["its document"] == bare { // a mirror gives an unsigned address, even before the file is public
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

// keepFile creates an asset with a document, and gives the document a file.
func (a api) keepFile(t *testing.T) *keptFile {
	t.Helper()
	f := &keptFile{api: a, content: "content", asset: a.publish(t, validAsset())}
	f.upload(t)
	f.name(t)
	return f
}

// reads reads the file from another registry, which has the data of the first one.
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
