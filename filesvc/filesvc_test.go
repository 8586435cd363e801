package filesvc

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

const base = "https://registry.example"

var secrets = keyring.Ring{bytes.Repeat([]byte{7}, keyring.MinLength)}

// rig is a service behind a real HTTP server. It has a fake feed of assets with their documents.
type rig struct {
	t      *testing.T
	url    string
	signer *identity.Signer
	now    atomic.Int64 // nanoseconds by which the service's clock is ahead of the real time
	feed   atomic.Value // string: the answer to a request for a page of the feed
}

// start starts a service, and passes it to each of the given functions (started).
func start(t *testing.T, change func(*Config), started ...func(*Server)) *rig {
	t.Helper()
	r := &rig{t: t}
	r.feed.Store(`{"data":[]}`)
	dir := t.TempDir()
	c := Config{
		Store: "file:" + filepath.Join(dir, "files.db"), Bytes: filepath.Join(dir, "files"), Secrets: secrets,
		BaseURL: base, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().Add(time.Duration(r.now.Load())) },
		Assets: httpserver.InProcess(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Query().Get("offset") != "" {
				emptyPage(w, q)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, r.feed.Load().(string))
		})),
	}
	change(&c)
	s, err := New(t.Context(), c)
	expect.OK(t, err)
	r.signer, err = identity.NewSigner(secrets, c.Now)
	expect.OK(t, err)
	for _, to := range started {
		to(s)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		server.Close()
		expect.Try(t, s.Close())
	})
	r.url = server.URL
	return r
}

func same(*Config) {}

var (
	broker  = identity.Identity{Broker: "broker1", KeyID: "k1", Role: identity.Broker}
	another = identity.Identity{Broker: "broker2", KeyID: "k2", Role: identity.Broker}
	nobody  = identity.Identity{}
)

// answer is an answer whose body was read to its end.
type answer struct {
	status int
	header http.Header
	text   string
}

func (r *rig) send(by identity.Identity, method, to, contentType string, body io.Reader, headers ...string) answer {
	r.t.Helper()
	to = r.url + strings.TrimPrefix(to, base)
	q := expect.Get(http.NewRequestWithContext(r.t.Context(), method, to, body))(r.t)
	signed := expect.Get(r.signer.Sign(by))(r.t)
	q.Header.Set(identity.Header, signed)
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp := expect.Get(http.DefaultClient.Do(q))(r.t)
	defer resp.Body.Close()
	text := expect.Get(io.ReadAll(resp.Body))(r.t)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (r *rig) get(by identity.Identity, to string, headers ...string) answer {
	r.t.Helper()
	return r.send(by, http.MethodGet, to, "", nil, headers...)
}

// form returns the body and the type of a form with one file.
func form(t *testing.T, name, declared, text string) (contentType string, body io.Reader) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := expect.Get(w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="` + name + `"`}, "Content-Type": {declared},
	}))(t)
	io.WriteString(part, text)
	expect.OK(t, w.Close())
	return w.FormDataContentType(), &b
}

func (r *rig) upload(by identity.Identity, to, name, declared, text string) answer {
	r.t.Helper()
	contentType, body := form(r.t, name, declared, text)
	return r.send(by, http.MethodPost, to, contentType, body)
}

func (r *rig) register(by identity.Identity, body string) answer {
	r.t.Helper()
	return r.send(by, http.MethodPost, "/register", "application/json", strings.NewReader(body))
}

func hash(text string) string {
	sum := md5.Sum([]byte(text))
	return "md5:" + hex.EncodeToString(sum[:])
}

// field returns a member of the JSON answer by its path.
func (a answer) field(t *testing.T, path ...string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(a.text), &value); err != nil {
		t.Fatalf("got %d %s, want JSON", a.status, a.text)
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	text, _ := value.(string)
	return text
}

// The method `is` fails the test unless the answer has the given status and fault.
func (a answer) is(t *testing.T, what string, status int, fault string) {
	t.Helper()
	got := ""
	var body struct {
		Errors []struct{ Location, Name, Description string }
	}
	if json.Unmarshal([]byte(a.text), &body) == nil && len(body.Errors) > 0 {
		e := body.Errors[0]
		got = e.Location + "/" + e.Name + "/" + e.Description
	}
	if a.status != status || got != fault {
		t.Errorf("%s: got %d %q, want %d %q", what, a.status, got, status, fault)
	}
}

func TestRegistrations(t *testing.T) {
	r := start(t, same)
	const urlencoded, notFound = "application/x-www-form-urlencoded", "body/hash/Not Found"
	const multi = "multipart/form-data; boundary=b"
	const broken = "body/data/The body is not JSON: it breaks off or has a fault near byte "
	zeros := strings.Repeat("0", 32)
	for _, c := range []struct {
		contentType, body string
		status            int
		fault             string
	}{
		{"application/json", `{"data":{"hash":"md5:` + zeros + `","title":"x"}}`, 201, ""},
		{urlencoded, "hash=md5:" + zeros, 201, ""},
		{"", `{"data":{"hash":"md5:` + zeros + `"}}`, 201, ""},
		{"application/json", `["&hash=md5:` + zeros + `&"]`, 404, notFound},
		{multi, "--b\r\nContent-Disposition: form-data; name=\"hash\"\r\n\r\nmd5:" + zeros + "\r\n--b--\r\n", 201, ""},
		{multi, "--b\r\nContent-Disposition: form-data; name=\"hash\"\r\n\r\nmd5:", 400,
			"body/file/The body ended before it was complete."},
		{urlencoded, "hash=md5:" + zeros + "&%zz", 404, notFound},
		{urlencoded, "x=\xff", 404, notFound},
		{urlencoded, "data", 404, notFound},
		{urlencoded, "not_hash=hash", 404, notFound},
		{"application/json", `{"data":"hash"}`, 404, notFound},
		{"application/json", `{}`, 404, notFound},
		{"application/json", `{"data":null}`, 404, notFound},
		{"application/json", `[]`, 404, notFound},
		{"", "", 404, notFound},
		{"application/json", "", 400, broken + "0."},
		{"application/json; charset=utf-8", `{"data":{"hash":`, 400, broken + "16."},
		{"application/json", `{"data":{}}{}`, 400, broken + "12."},
		{"application/json", "hash=md5:" + zeros, 400, broken + "1."},
		{"application/json", "{\"data\":\"\xff\"}", 400, "body/data/could not decode params: the body is not valid UTF-8"},
		{urlencoded, "hash=hash", 422, "body/hash/Hash type is not supported."},
		{"application/json", `{"data":{"hash":7}}`, 422, "body/hash/Hash type is not supported."},
		{urlencoded, "hash=md5:hash", 422, "body/hash/Hash value is wrong length."},
		{urlencoded, "hash=md5:" + strings.Repeat("o", 32), 422, "body/hash/Hash value is not hexadecimal."},
		{urlencoded, "hash=md5:" + strings.Repeat("A", 32), 422, "body/hash/Hash value is not hexadecimal."},
		{urlencoded, "x=" + strings.Repeat("x", 65_534), 404, notFound},
		{urlencoded, "x=" + strings.Repeat("x", 70_000), 413, "body/data/The body has more than 65536 bytes."},
	} {
		r.send(broker, http.MethodPost, "/register", c.contentType, strings.NewReader(c.body)).is(t, c.body, c.status, c.fault)
	}
	r.register(nobody, `{"data":{"hash":"md5:`+zeros+`"}}`).is(t, "anonymous", 401, "header/Authorization/An API key is needed.")
	a := r.register(broker, `{"data":{"hash":"md5:`+zeros+`","title":"x"}}`)
	expect.Equal(t, a.field(t, "data", "title"), "x", "the title")
	if got, want := a.header.Get("Location"), a.field(t, "upload_url"); got != want || !strings.HasPrefix(got, base+"/upload/") {
		t.Errorf("got Location %q, want %q, below %s/upload/", got, want, base)
	}
	if got := a.field(t, "data", "url"); !strings.HasPrefix(got, base+"/get/") || !strings.Contains(got, "Signature=") {
		t.Errorf("got the url %q, want one with a signature", got)
	}
}

// TestUploadAfterRegistration first registers a file and then uploads it. The systems from which this API comes have a
// document service, whose guide describes these steps. Only the broker's own upload of the registered bytes may
// succeed, and only once.
func TestUploadAfterRegistration(t *testing.T) {
	r := start(t, same)
	registered := r.register(broker, `{"data":{"hash":"`+hash("content")+`"}}`)
	to := registered.field(t, "upload_url")
	id := strings.TrimPrefix(registered.field(t, "data", "url")[:len(base)+5+32], base+"/get/")
	bare := base + "/upload/" + id
	with := func(name, value string) string {
		u := expect.Get(url.Parse(to))(t)
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = q.Encode()
		return u.String()
	}
	if a := r.get(broker, "/get/"+id); a.status != 204 || a.text != "" || a.header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("before the upload: got %d %q and %v, want 204 for nobody else", a.status, a.text, a.header)
	}
	another32 := strings.Replace(to, id, strings.Repeat("0", 32), 1)
	r.send(broker, http.MethodPost, to, "text/plain", strings.NewReader("data")).is(t, "no form", 404, "body/file/Not Found")
	r.upload(broker, bare, "a.txt", "text/plain", "content").is(t, "no signature", 403, "url/Signature/Not Found")
	r.upload(broker, with("KeyID", "test"), "a.txt", "text/plain", "content").is(t, "a key", 403, "url/KeyID/Key Id does not exist")
	r.upload(broker, with("Signature", ""), "a.txt", "text/plain", "content").
		is(t, "an empty signature", 403, "url/Signature/Signature does not match")
	r.upload(broker, another32, "a.txt", "text/plain", "content").
		is(t, "another id", 403, "url/Signature/Signature does not match")
	r.upload(nobody, to, "a.txt", "text/plain", "content").is(t, "no key", 401, "header/Authorization/An API key is needed.")
	r.upload(another, to, "a.txt", "text/plain", "content").
		is(t, "another broker", 403, "url/permission/Forbidden: another broker registered this file.")
	r.upload(broker, to, "a.txt", "text/plain", "contents").is(t, "other bytes", 403, "body/file/Invalid checksum")
	a := r.upload(broker, to, "a.txt", "text/plain", "content")
	a.is(t, "the bytes", 200, "")
	if got := a.header; got.Get("Location") != a.field(t, "get_url") || got.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v, want the address of the file, and no cache, because the address has a signature", got)
	}
	for path, want := range map[string]string{"hash": hash("content"), "format": "text/plain", "title": "a.txt"} {
		if got := a.field(t, "data", path); got != want {
			t.Errorf("got %s %q, want %q", path, got, want)
		}
	}
	r.upload(broker, to, "a.txt", "text/plain", "content").is(t, "again", 403, "url/doc_id/Content already uploaded")
	if got := r.get(nobody, a.field(t, "get_url")); got.status != 200 || got.text != "content" {
		t.Errorf("got %d %q, want the content", got.status, got.text)
	}
}

func TestSight(t *testing.T) {
	r := start(t, same)
	a := r.upload(broker, "/upload", "a.txt", "text/plain", "content")
	getURL := a.field(t, "get_url")
	bare, _, _ := strings.Cut(getURL, "?")
	r.get(nobody, bare).is(t, "anonymous", 403, "url/Signature/Not Found")
	r.get(another, bare).is(t, "another broker", 403, "url/Signature/Not Found")
	r.get(nobody, a.field(t, "data", "url")).is(t, "the signature of a document", 403, "url/Signature/Signature does not match")
	r.get(nobody, "/get/"+strings.Repeat("0", 32)).is(t, "no such file", 404, "url/doc_id/Not Found")
	r.get(nobody, "/get/x").is(t, "no id", 404, "url/doc_id/Not Found")
	for _, c := range []struct {
		by identity.Identity
		to string
	}{{broker, bare}, {nobody, getURL}} {
		if got := r.get(c.by, c.to); got.text != "content" || got.header.Get("Cache-Control") != "private, no-store" {
			t.Errorf("%s: got %q and %v, want the content for nobody else", c.to, got.text, got.header)
		}
	}
	// Sites and programs add parameters to links: they never change the answer, readable or not.
	others := []string{"mode=test", "utm_source=a", "reason=a;b", "%zz=1", "limit=%", "after=%ff", "_=1&_=2", "&&=", "limt=5&limit=0"}
	for _, other := range others {
		r.get(nobody, bare+"?"+other).is(t, "anonymous, with "+other, 403, "url/Signature/Not Found")
		for _, to := range []string{getURL + "&" + other, strings.Replace(getURL, "?", "?"+other+"&", 1)} {
			if got := r.get(nobody, to); got.status != 200 || got.text != "content" {
				t.Errorf("%s: got %d %q, want the content", to, got.status, got.text)
			}
		}
	}
	r.now.Store(int64(7 * time.Minute))
	r.get(nobody, getURL).is(t, "later", 403, "url/Expires/Request has expired")
	r.feed.Store(fmt.Sprintf(`{"data":[{"dateModified":"2026-11-26T09:00:00.000001Z","documents":[{"url":%q}]}]}`, bare))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := r.get(nobody, bare)
		if got.status == 200 && got.text == "content" && got.header.Get("Cache-Control") == "public, no-cache" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %d %q, want the content once a document names it", got.status, got.text)
		}
	}
	for _, other := range others {
		if got := r.get(nobody, bare+"?"+other); got.status != 200 || got.text != "content" {
			t.Errorf("a named file, with %s: got %d %q, want the content", other, got.status, got.text)
		}
	}
}

func TestReadings(t *testing.T) {
	var server *Server
	r := start(t, same, func(s *Server) { server = s })
	to := r.upload(broker, "/upload", "a.txt", "text/plain", "0123456789").field(t, "get_url")
	whole := r.get(nobody, to)
	expect.Equal(t, server.files.Counts.Sent.Load(), 10, "bytes counted as sent")
	for _, c := range []struct {
		header, value string
		status        int
		text          string
	}{
		{"Range", "bytes=2-4", 206, "234"}, {"Range", "bytes=-3", 206, "789"}, {"Range", "bytes=0-", 206, "0123456789"},
		{"Range", "BYTES=0-0", 206, "0"}, {"Range", "items=0-1", 200, "0123456789"}, {"Range", "x", 200, "0123456789"},
		{"If-None-Match", whole.header.Get("ETag"), 304, ""}, {"If-Range", `"x"`, 200, "0123456789"},
	} {
		if got := r.get(nobody, to, c.header, c.value); got.status != c.status || got.text != c.text {
			t.Errorf("%s: %s: got %d %q, want %d %q", c.header, c.value, got.status, got.text, c.status, c.text)
		}
	}
	for _, several := range []string{"bytes=0-1,4-5", "bytes=0-0" + strings.Repeat(",0-0", 4000)} {
		r.get(nobody, to, "Range", several).is(t, "several ranges", 416, "header/Range/Ask for one range at a time.")
		if got := r.get(nobody, to, "Range", several, "If-None-Match", "*"); got.status != 304 {
			t.Errorf("several ranges of a copy that is kept: got %d, want 304", got.status)
		}
	}
	r.get(nobody, to, "Range", "bytes=-0").is(t, "no byte", 416, "header/Range/The file has 10 bytes.")
	beyond := r.get(nobody, to, "Range", "bytes=10-")
	beyond.is(t, "beyond the file", 416, "header/Range/The file has 10 bytes.")
	if got := beyond.header; got.Get("Content-Range") != "bytes */10" || got.Get("Content-Disposition") != "" {
		t.Errorf("beyond the file: got %v, want Content-Range and nothing of the file", got)
	}
	r.get(nobody, to, "If-Match", `"x"`).
		is(t, "another tag", 412, "url/precondition/The file does not have the tag of If-Match.")
	if got := r.send(nobody, http.MethodHead, to, "", nil); got.status != 200 || got.header.Get("Content-Length") != "10" {
		t.Errorf("HEAD: got %d and %v, want the length", got.status, got.header)
	}
	empty := r.upload(broker, "/upload", "a.txt", "text/plain", "").field(t, "get_url")
	if got := r.get(nobody, empty); got.status != 200 || got.header.Get("Content-Length") != "0" {
		t.Errorf("an empty file: got %d and %v, want 200", got.status, got.header)
	}
	if got := r.get(nobody, empty, "Range", "bytes=-5"); got.status != 200 || got.header.Get("Content-Range") != "" {
		t.Errorf("the end of an empty file: got %d and %v, want 200", got.status, got.header)
	}
}

// TestHarmless checks the headers with which hostile files are served (docs/files.md, D6). No browser may run
// scripts in such a file.
func TestHarmless(t *testing.T) {
	r := start(t, same)
	const png, jpeg = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "\xff\xd8\xff\xe0"
	for _, c := range []struct{ name, declared, text, shown, policy, kind string }{
		{"a.pdf", "application/pdf", "%PDF-1.4\n", "application/pdf", "frame-ancestors 'none'; base-uri 'none'; form-action 'none'", "inline"},
		{"a.png", "image/png", png, "image/png", "sandbox; default-src 'none'", "inline"},
		{"a.png", "image/png", "<html><script>x</script>", "application/octet-stream", "sandbox; default-src 'none'", "attachment"},
		{"a.html", "text/html", png, "application/octet-stream", "sandbox; default-src 'none'", "attachment"},
		{"a.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg">`, "application/octet-stream",
			"sandbox; default-src 'none'", "attachment"},
		{"a.js", "text/javascript", "alert(1)", "application/octet-stream", "sandbox; default-src 'none'", "attachment"},
		{"a.xml", "text/xml", "<?xml version='1.0'?><x/>", "application/octet-stream", "sandbox; default-src 'none'", "attachment"},
		{"a.txt", "text/plain", "text", "text/plain", "sandbox; default-src 'none'", "attachment"},
		{"a.doc", "", "text", "text/plain", "sandbox; default-src 'none'", "attachment"},
		{"a.jpg", "image/jpg", jpeg, "image/jpeg", "sandbox; default-src 'none'", "inline"},
		{"a.jpg", "image/pjpeg", jpeg, "image/jpeg", "sandbox; default-src 'none'", "inline"},
		{"a.jpg", "image/pjpeg", png, "image/pjpeg", "sandbox; default-src 'none'", "attachment"},
		{"a.png", "image/x-png", png, "image/png", "sandbox; default-src 'none'", "inline"},
		{"a", "jpeg", "text", "text/plain", "sandbox; default-src 'none'", "attachment"},
	} {
		got := r.get(nobody, r.upload(broker, "/upload", c.name, c.declared, c.text).field(t, "get_url")).header
		kind, _, _ := strings.Cut(got.Get("Content-Disposition"), ";")
		if got.Get("Content-Type") != c.shown || got.Get("Content-Security-Policy") != c.policy || kind != c.kind ||
			got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Cross-Origin-Resource-Policy") != "same-site" {
			t.Errorf("%s as %s: got %v, want %s, %s, %s", c.name, c.declared, got, c.shown, c.policy, c.kind)
		}
	}
}

func TestNames(t *testing.T) {
	r := start(t, same)
	for _, c := range []struct{ sent, want string }{
		{"акт.txt", `attachment; filename="___.txt"; filename*=UTF-8''%D0%B0%D0%BA%D1%82.txt`},
		{`a\"b.txt`, `attachment; filename="a_b.txt"; filename*=UTF-8''a%22b.txt`},
		{"a%22b%22.txt", `attachment; filename="a_b_.txt"; filename*=UTF-8''a%22b%22.txt`},
		{"a%0Ab.txt", `attachment; filename="ab.txt"; filename*=UTF-8''ab.txt`},
		{"100%.txt", `attachment; filename="100_.txt"; filename*=UTF-8''100%25.txt`},
		{`a"; filename*=UTF-8''a%2522b.txt; x="`, `attachment; filename="a_22b.txt"; filename*=UTF-8''a%2522b.txt`},
		{"../../a b.txt", `attachment; filename="a b.txt"; filename*=UTF-8''a%20b.txt`},
		{"a%0D%0AX: y.txt", `attachment; filename="aX: y.txt"; filename*=UTF-8''aX%3A%20y.txt`},
		{"a%0d%20.txt", `attachment; filename="a_0d_20.txt"; filename*=UTF-8''a%250d%2520.txt`},
		{`a"; filename*=UTF-8''a%0D%0AX%3A%20y.txt; x="`, `attachment; filename="aX: y.txt"; filename*=UTF-8''aX%3A%20y.txt`},
		{strings.Repeat("x", 1000), `attachment; filename="` + strings.Repeat("x", 255) + `"; filename*=UTF-8''` + strings.Repeat("x", 255)},
	} {
		a := r.get(nobody, r.upload(broker, "/upload", c.sent, "text/plain", "x").field(t, "get_url"))
		expect.Equal(t, a.header.Get("Content-Disposition"), c.want, "%q", c.sent)
	}
}

// TestForms sends hostile forms, and forms that are cut off. All of these must be refused with a fault that says
// why. Long files are longer than a buffer and than the header of a part can be.
func TestForms(t *testing.T) {
	const most = 100_000
	r := start(t, func(c *Config) { c.Limits.MaxFile = most })
	const open = "--b\r\nContent-Disposition: form-data; name="
	field := func(n int) string { return open + "\"x\"\r\n\r\n" + strings.Repeat("x", n) + "\r\n" }
	file := func(text string) string {
		return open + "\"file\"; filename=\"a\"\r\n\r\n" + text + "\r\n"
	}
	long := strings.Repeat("x", most)
	for _, c := range []struct {
		name, body string
		status     int
		fault      string
	}{
		{"fields and a file", field(3) + file("x") + field(3) + "--b--\r\n", 200, ""},
		{"16 parts", strings.Repeat(field(1), 15) + file("x") + "--b--\r\n", 200, ""},
		{"the longest field", field(65_536) + file("x") + "--b--\r\n", 200, ""},
		{"a file of another field", open + "\"x\"; filename=\"a\"\r\n\r\nx\r\n--b--\r\n", 404, "body/file/Not Found"},
		{"no file", field(3) + "--b--\r\n", 404, "body/file/Not Found"},
		{"a file without a name", open + "\"file\"\r\n\r\nx\r\n--b--\r\n", 404, "body/file/Not Found"},
		{"two files", file("x") + file("y") + "--b--\r\n", 400, "body/file/The form has more than one file."},
		{"many parts", strings.Repeat(field(1), 16) + file("x") + "--b--\r\n", 400, "body/data/The form has more than 16 parts."},
		{"many parts after it", file("x") + strings.Repeat(field(1), 16) + "--b--\r\n", 400, "body/data/The form has more than 16 parts."},
		{"a long field", field(70_000) + file("x") + "--b--\r\n", 413, "body/x/A field has more than 65536 bytes."},
		{"a long field after it", file("x") + field(70_000) + "--b--\r\n", 413, "body/x/A field has more than 65536 bytes."},
		{"a long header", "--b\r\nX: " + strings.Repeat("x", 100_000), 413, "body/data/The header of a part has more than 65536 bytes."},
		{"a long header after the file", file("x") + "--b\r\nX: " + strings.Repeat("x", 100_000), 413,
			"body/data/The header of a part has more than 65536 bytes."},
		{"many headers", "--b\r\n" + strings.Repeat("X: yyyyyyyyyy\r\n", 8000), 413, "body/data/The header of a part has more than 65536 bytes."},
		{"too many headers", "--b\r\n" + strings.Repeat("X:\r\n", 11_000) + "\r\nx", 400, "body/file/A part of the form has too many headers."},
		{"a long header of zeros", "--b\r\nX: " + strings.Repeat("\x00", 100_000), 413,
			"body/data/The header of a part has more than 65536 bytes."},
		{"a header without a colon", "--b\r\nnonsense\r\n\r\nx\r\n--b--\r\n", 400, "body/data/The form is malformed."},
		{"the same after the file", file("x") + "--b\r\nnonsense\r\n\r\nx\r\n--b--\r\n", 400, "body/data/The form is malformed."},
		{"a long line before the form", strings.Repeat("x", 9000) + file("x"), 400, "body/data/The form is malformed."},
		{"a long beginning", strings.Repeat("x\r\n", 30_000) + file("x") + "--b--\r\n", 413,
			"body/data/The header of a part has more than 65536 bytes."},
		{"a large file", file(long+"x") + "--b--\r\n", 413, "body/file/The file has more than 100000 bytes."},
		{"a long file", file(long) + "--b--\r\n", 200, ""},
		{"two long files", file(long) + file(long) + "--b--\r\n", 400, "body/file/The form has more than one file."},
		{"a long file without an end", file(long), 400, "body/file/The body ended before it was complete."},
		{"half a file", open + "\"file\"; filename=\"a\"\r\n\r\nhalf", 400, "body/file/The body ended before it was complete."},
		{"no end", file("x"), 400, "body/file/The body ended before it was complete."},
		{"half of the end", file("x") + "--b", 400, "body/file/The body ended before it was complete."},
	} {
		r.send(broker, http.MethodPost, "/upload", "multipart/form-data; boundary=b", strings.NewReader(c.body)).
			is(t, c.name, c.status, c.fault)
	}
}

// TestAbsentBytes removes the bytes of a file from the disk, as a damaged disk may. A reader must get a fault
// without the headers of the file.
func TestAbsentBytes(t *testing.T) {
	dir := t.TempDir()
	r := start(t, func(c *Config) { c.Bytes = dir })
	to := r.upload(broker, "/upload", "a.txt", "text/plain", "content").field(t, "get_url")
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	expect.FatalIf(t, err != nil || len(paths) != 1, "got %v, %v, want one file", paths, err)
	expect.OK(t, os.Remove(paths[0]))
	if got := r.get(nobody, to); got.status != 500 || got.header.Get("Content-Disposition") != "" {
		t.Errorf("got %d and %v, want a fault", got.status, got.header)
	}
}

// TestABodyThatCannotBeDecoded sends a body whose chunks are malformed. The error must be a fault of the client, so
// that it raises no alarm.
func TestABodyThatCannotBeDecoded(t *testing.T) {
	r := start(t, same)
	signed := expect.Get(r.signer.Sign(broker))(t)
	for _, path := range []string{"/register", "/upload", "/forms"} {
		for _, chunk := range []string{"", "3\r\n--b\r\n"} {
			conn := expect.Get(net.Dial("tcp", strings.TrimPrefix(r.url, "http://")))(t)
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Type: multipart/form-data; boundary=b\r\n"+
				"Transfer-Encoding: chunked\r\n\r\n%szz\r\n", path, identity.Header, signed, chunk)
			resp := expect.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
			text := expect.Get(io.ReadAll(resp.Body))(t)
			answer{resp.StatusCode, resp.Header, string(text)}.is(t, path, 400, "body/file/The body ended before it was complete.")
		}
	}
}

// TestALongTypeIsNone uploads files with a media type that is longer than types can be, and with one that is
// malformed. Such a type must be ignored. Proxies would refuse answers with such a long header.
func TestALongTypeIsNone(t *testing.T) {
	r := start(t, same)
	const most = 127 + len("/") + 127 // RFC 6838, 4.2
	for _, c := range []struct {
		declared, want string
	}{
		{"a/" + strings.Repeat("b", most-2), "a/" + strings.Repeat("b", most-2)},
		{"a/" + strings.Repeat("b", most-1), "text/plain"},
		{"a/b; a parameter", "text/plain"},
	} {
		a := r.upload(broker, "/upload", "a.txt", c.declared, "content")
		expect.Equal(t, a.field(t, "data", "format"), c.want, "a type of %d bytes", len(c.declared))
	}
}

func TestWithoutAPublicAddress(t *testing.T) {
	r := start(t, func(c *Config) { c.BaseURL = "" })
	const says = "url/files/The registry takes no files, because it does not know its public address; the operator sets --base-url."
	r.register(broker, `{"data":{"hash":"`+hash("x")+`"}}`).is(t, "register", 503, says)
	r.upload(broker, "/upload", "a", "text/plain", "x").is(t, "upload", 503, says)
}

// TestRequestsOfOthers sends a request without a signed identity, and a claim by a caller that is not a
// service. Both must be refused.
func TestRequestsOfOthers(t *testing.T) {
	r := start(t, same)
	resp := expect.Get(http.Get(r.url + "/get/" + strings.Repeat("0", 32)))(t)
	resp.Body.Close()
	expect.Equal(t, resp.StatusCode, 401, "")
	r.send(broker, http.MethodPost, "/claims/"+strings.Repeat("0", 32), "application/json", strings.NewReader("{}")).
		is(t, "a claim of a broker", 403, "url/permission/Forbidden: only services claim files.")
}

// TestClaims claims files as the asset service does. The asset service must learn the SHA-256 and the size of the
// file, or the reason for a refusal.
func TestClaims(t *testing.T) {
	r := start(t, same)
	uploaded := r.upload(broker, "/upload", "a.txt", "text/plain", "content").field(t, "data", "url")
	id := uploaded[len(base)+5:][:32]
	service := identity.Identity{KeyID: "s1", Role: identity.Service}
	claim := func(id, body string) answer {
		return r.send(service, http.MethodPost, "/claims/"+id, "application/json", strings.NewReader(body))
	}
	md5 := strings.TrimPrefix(hash("content"), "md5:")
	got := claim(id, `{"md5":"`+md5+`","broker":"broker1"}`)
	sum := sha256.Sum256([]byte("content"))
	if want := fmt.Sprintf("{\"sha256\":\"%x\",\"size\":7}\n", sum); got.status != 200 || got.text != want {
		t.Errorf("got %d %q, want %q", got.status, got.text, want)
	}
	claim(id, "{").is(t, "no JSON", 400, "body/data/The body must be a claim in JSON.")
	claim(id, `{"md5":"`+strings.Repeat(" ", 70_000)+`"}`).is(t, "long", 400, "body/data/The body must be a claim in JSON.")
	claim(id, `{"md5":"`+md5+`","broker":"broker2"}`).is(t, "another broker", 403,
		"body/url/This file is another broker's; use the url with the signature that the upload returned.")
}

// TestOnlyTransfersHaveNoDeadline gives requests no time. A transfer may take as long as its client keeps the pace,
// so it must succeed. Every other request must be refused.
func TestOnlyTransfersHaveNoDeadline(t *testing.T) {
	r := start(t, func(c *Config) { c.Timeout = 1 })
	a := r.upload(broker, "/upload", "a.txt", "text/plain", "content")
	a.is(t, "upload", 200, "")
	r.upload(broker, "/forms", "a.txt", "text/plain", "content").is(t, "form of a document", 200, "")
	r.get(nobody, a.field(t, "get_url")).is(t, "get", 200, "")
	r.get(broker, "/get").is(t, "list", 503, "url/timeout/The registry could not answer in time; repeat the request.")
}

// TestTooManyRegistrations registers more files than a broker may before it uploads them.
func TestTooManyRegistrations(t *testing.T) {
	r := start(t, func(c *Config) { c.Limits.WaitingMost = 1 })
	body := `{"data":{"hash":"` + hash("x") + `"}}`
	r.register(broker, body).is(t, "the first", 201, "")
	r.register(broker, body).is(t, "the second", 403,
		"body/hash/You have 1 files that were registered and not uploaded; upload them first, or wait for a day.")
}

// TestFormsOfDocuments sends forms that have a file, and fields of the document that names it. The answer must
// be the document, with the signed address of the file.
func TestFormsOfDocuments(t *testing.T) {
	r := start(t, same)
	const open = "--b\r\nContent-Disposition: form-data; name="
	field := func(name, text string) string { return open + "\"" + name + "\"\r\n\r\n" + text + "\r\n" }
	const file = open + "\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\ncontent\r\n"
	for _, c := range []struct {
		name, body, want string // want is the document without its url, or the fault
	}{
		{"only a file", file, `{"format":"text/plain","hash":"` + hash("content") + `","title":"a.txt"}`},
		{"fields on both sides", field("documentType", "notice") + file + field("title", "Акт"),
			`{"documentType":"notice","format":"text/plain","hash":"` + hash("content") + `","title":"Акт"}`},
		{"data", field("data", `{"index":7,"hash":"md5:0","url":"x"}`) + file,
			`{"format":"text/plain","hash":"` + hash("content") + `","index":7,"title":"a.txt"}`},
		{"fields without a value", field("title", " ") + field("format", "") + field("description", "") + file,
			`{"description":"","format":"text/plain","hash":"` + hash("content") + `","title":"a.txt"}`},
		{"the same as data, and no type", file + field("data", `{"title":"","format":"pdf"}`),
			`{"format":"text/plain","hash":"` + hash("content") + `","title":"a.txt"}`},
		{"values", field("title", "б") + field("format", "image/x") + file,
			`{"format":"image/x","hash":"` + hash("content") + `","title":"б"}`},
		{"no data", field("data", `null`) + file, "body/data/The field must be a JSON object."},
		{"half a field", open + "\"title\"\r\n\r\nhalf", "body/file/The body ended before it was complete."},
		{"data that are no object", field("data", `[]`) + file, "body/data/The field must be a JSON object."},
		{"no UTF-8", field("title", "\xff") + file, "body/title/The field must be UTF-8."},
		{"the longest fields", field("title", strings.Repeat("x", 40_000)) + field("x", strings.Repeat("x", 25_536)) + file,
			`{"format":"text/plain","hash":"` + hash("content") + `","title":"` + strings.Repeat("x", 40_000) + `","x":"` +
				strings.Repeat("x", 25_536) + `"}`},
		{"long fields", field("title", strings.Repeat("x", 40_000)) + field("x", strings.Repeat("x", 40_000)) + file,
			"body/x/The fields have more than 65536 bytes."},
	} {
		body := c.body
		if strings.HasSuffix(body, "\r\n") {
			body += "--b--\r\n"
		}
		a := r.send(broker, http.MethodPost, "/forms", "multipart/form-data; boundary=b", strings.NewReader(body))
		if !strings.HasPrefix(c.want, "{") {
			status := http.StatusBadRequest
			if strings.Contains(c.want, "more than") {
				status = http.StatusRequestEntityTooLarge
			}
			a.is(t, c.name, status, c.want)
			continue
		}
		var got struct{ Data map[string]any }
		if err := json.Unmarshal([]byte(a.text), &got); err != nil {
			t.Fatalf("%s: got %d %s, want JSON", c.name, a.status, a.text)
		}
		url, _ := got.Data["url"].(string)
		delete(got.Data, "url")
		if text, _ := json.Marshal(got.Data); a.status != 200 || string(text) != c.want || !strings.Contains(url, "Signature=") {
			t.Errorf("%s: got %d %s at %s, want %s at a signed address", c.name, a.status, text, url, c.want)
		}
	}
	r.send(broker, http.MethodPost, "/forms", "text/plain", strings.NewReader("x")).is(t, "no form", 404, "body/file/Not Found")
	r.send(nobody, http.MethodPost, "/forms", "multipart/form-data; boundary=b", strings.NewReader(file+"--b--\r\n")).
		is(t, "no key", 401, "header/Authorization/An API key is needed.")
}

// TestAServiceWithAWrongClockIsNotReady compares the clock with those of MongoDB and of an asset service.
func TestAServiceWithAWrongClockIsNotReady(t *testing.T) {
	assets := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(assets.Close)
	uri := mongotest.Start(t).URI(t, "clocks")
	r := start(t, func(c *Config) { c.Store, c.Assets, c.AssetsURLs = uri, nil, []string{assets.URL} })
	r.now.Store(int64(time.Hour))
	for wait := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp := expect.Get(http.Get(r.url + "/readyz"))(t)
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(text), "ahead of those of most") {
			return
		}
		if time.Now().After(wait) {
			t.Fatalf("got %d %s, want 503 that says why", resp.StatusCode, text)
		}
	}
}
