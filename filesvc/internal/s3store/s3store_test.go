package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/storetest"
	"asset-registry/shared/fault"
	"asset-registry/shared/s3test"
	"asset-registry/shared/testing/expect"
)

const timeout = 5 * time.Second

func open(t *testing.T, address string) *Store {
	t.Helper()
	a := expect.Get(Parse(address))(t)
	s := expect.Get(Open(a, t.TempDir(), timeout))(t)
	return s
}

func TestConformance(t *testing.T) {
	server := s3test.Start(t, false, "files", "others")
	t.Run("a bucket", func(t *testing.T) { storetest.RunBytes(t, open(t, server.Address("files"))) })
	// Keys outside of the prefix belong to others.
	beside := open(t, server.Address("others"))
	expect.OK(t, beside.Put(t.Context(), blob(1), strings.NewReader("x")))
	t.Run("a prefix", func(t *testing.T) { storetest.RunBytes(t, open(t, server.Address("others/of/us"))) })
	if names, err := beside.Names(t.Context(), "", 9); err != nil || len(names) != 1 {
		t.Errorf("beside the prefix: got %q and %v, want one name", names, err)
	}
}

func blob(n int) string { return fmt.Sprintf("%032x-%016x", n, n) }

// TestRemovalOfAllVersions removes bytes from a bucket with versions. No version may stay readable.
func TestRemovalOfAllVersions(t *testing.T) {
	server := s3test.Start(t, true, "files")
	s := open(t, server.Address("files"))
	expect.OK(t, s.client.EnableVersioning(t.Context(), "files"))
	storetest.RunBytes(t, s)
	for range 3 {
		expect.OK(t, s.Put(t.Context(), blob(2), strings.NewReader("secret")))
	}
	if got := versions(t, s); got != 3 {
		t.Fatalf("got %d versions, want 3", got)
	}
	expect.OK(t, s.Remove(t.Context(), blob(2)))
	expect.Equal(t, versions(t, s), 0, "versions after the removal")
}

// TestRemovalOfAVersionWithoutANumber removes bytes that were stored both before and after their bucket began to
// keep versions. Another object, whose key only begins with the name of the bytes, must stay. No DELETE may be sent
// for it.
func TestRemovalOfAVersionWithoutANumber(t *testing.T) {
	var requests atomic.Int32
	s := openBehind(t, s3test.Start(t, true, "files"), func(r *http.Response) error {
		if r.Request.Method == "DELETE" {
			requests.Add(1)
		}
		return nil
	})
	beside := blob(1) + ".copy"
	for range 2 {
		for _, key := range []string{blob(1), beside} {
			expect.OK(t, s.put(t.Context(), key, strings.NewReader("secret"), 6))
		}
		expect.OK(t, s.client.EnableVersioning(t.Context(), "files"))
	}
	expect.OK(t, s.Remove(t.Context(), blob(1)))
	var left []string
	for o := range s.client.ListObjectsIter(t.Context(), s.bucket, listVersions(s.prefix)) {
		left = append(left, o.Key)
	}
	if want := []string{beside, beside}; !slices.Equal(left, want) {
		t.Errorf("got versions of %q after the removal, want versions of %q only", left, want)
	}
	expect.Equal(t, requests.Load(), 2, "requests to delete")
}

// versions returns the number of versions of all blobs.
func versions(t *testing.T, s *Store) (n int) {
	t.Helper()
	for o := range s.client.ListObjectsIter(t.Context(), s.bucket, listVersions(s.prefix)) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		if file.IsBlob(strings.TrimPrefix(o.Key, s.prefix)) {
			n++
		}
	}
	return n
}

// TestStoreAway kills the object store. Each operation must fail with a fault after which the client may repeat
// it.
func TestStoreAway(t *testing.T) {
	server := s3test.Start(t, false, "files")
	s := open(t, server.Address("files"))
	expect.OK(t, s.Put(t.Context(), blob(1), strings.NewReader("before")))
	half := expect.Get(s.Open(t.Context(), blob(1)))(t)
	server.Kill()
	for what, do := range map[string]func() error{
		"put":    func() error { return s.Put(t.Context(), blob(2), strings.NewReader("x")) },
		"open":   func() error { _, err := s.Open(t.Context(), blob(1)); return err },
		"read":   func() error { _, err := io.ReadAll(half); return err },
		"remove": func() error { return s.Remove(t.Context(), blob(1)) },
		"names":  func() error { _, err := s.Names(t.Context(), "", 9); return err },
		"age": func() error {
			old, err := s.IsBefore(t.Context(), blob(1), time.Now())
			if old {
				t.Error("got bytes that are old, want an unknown age") // the sweep removes old bytes
			}
			return err
		},
		"note":   func() error { return s.NoteRemoval(t.Context(), file.File{ID: strings.Repeat("1", 32)}) },
		"noted":  func() error { _, err := s.Removals(t.Context()); return err },
		"listed": func() error { _, err := s.Removed(t.Context(), "", 9); return err },
	} {
		if err := do(); fault.KindOf(err) != fault.Unavailable || errors.Is(err, file.ErrNotFound) {
			t.Errorf("%s: got %v, want a fault of kind Unavailable", what, err)
		}
	}
	server.Restart()
	b := expect.Get(s.Open(t.Context(), blob(1)))(t)
	defer b.Close()
	if text, err := io.ReadAll(b); err != nil || string(text) != "before" {
		t.Errorf("after the restart: got %q and %v, want the bytes", text, err)
	}
}

// TestAnAnswerThatStops has an object store that begins each answer, and never ends it. Each operation must end
// with a fault of kind Unavailable.
func TestAnAnswerThatStops(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "<?xml version=\"1.0\"?><ListBucketResult>")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	s := openAt(t, server)
	s.timeout = 200 * time.Millisecond
	for what, do := range map[string]func() error{
		"removals": func() error { _, err := s.Removals(t.Context()); return err },
		"names":    func() error { _, err := s.Names(t.Context(), "", 9); return err },
		"remove":   func() error { return s.Remove(t.Context(), blob(1)) },
	} {
		expect.Fault(t, do(), fault.Unavailable, "%s", what)
	}
}

// openAt opens a store at a server that is no real object store, or stands before one. The server ends with the test.
func openAt(t *testing.T, server *httptest.Server) *Store {
	t.Helper()
	t.Cleanup(server.Close)
	for _, pair := range s3test.Environment {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	return open(t, "s3+"+server.URL+"/files")
}

// openBehind opens the bucket "files" of a store behind a proxy that gives each answer to the function `change`. If the
// function returns an error, the store does not get the answer.
func openBehind(t *testing.T, server *s3test.Server, change func(*http.Response) error) *Store {
	t.Helper()
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: server.Addr})
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: change,
		ErrorLog:       log.New(io.Discard, "", 0),
	})
	return openAt(t, proxy)
}

var removed = file.File{ID: strings.Repeat("1", 32), State: file.Removed}

// TestLostAnswers loses the answers to one kind of request. The operation must fail, because nobody knows whether the
// store has done it.
func TestLostAnswers(t *testing.T) {
	server := s3test.Start(t, false, "files")
	direct := open(t, server.Address("files"))
	expect.OK(t, direct.Put(t.Context(), blob(1), strings.NewReader("x")))
	expect.OK(t, direct.NoteRemoval(t.Context(), removed))
	other := removed
	other.ID = strings.Repeat("2", 32)
	for _, c := range []struct {
		what, method, key string
		do                func(*Store) error
	}{
		{"noted", "GET", removals + removed.ID, func(s *Store) error { _, err := s.Removals(t.Context()); return err }},
		{"note", "PUT", removals + other.ID, func(s *Store) error { return s.NoteRemoval(t.Context(), other) }},
		{"read", "GET", blob(1), func(s *Store) error {
			b, err := s.Open(t.Context(), blob(1))
			expect.OK(t, err)
			defer b.Close()
			_, err = io.ReadAll(b)
			return err
		}},
		{"remove", "DELETE", blob(1), func(s *Store) error { return s.Remove(t.Context(), blob(1)) }},
	} {
		s := openBehind(t, server, func(r *http.Response) error {
			if r.Request.Method == c.method && r.Request.URL.Path == "/files/"+c.key {
				return errors.New("lost")
			}
			return nil
		})
		expect.Fault(t, c.do(s), fault.Unavailable, "%s", c.what)
	}
}

// TestCutAnswers has answers that end too early. No part of the bytes may be taken for all of them.
func TestCutAnswers(t *testing.T) {
	server := s3test.Start(t, false, "files")
	s := openBehind(t, server, func(r *http.Response) error {
		if r.Request.Method == "GET" && r.Request.URL.RawQuery == "" {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.LimitReader(r.Body, 2), r.Body}
		}
		return nil
	})
	expect.OK(t, s.Put(t.Context(), blob(1), strings.NewReader("0123456789")))
	b := expect.Get(s.Open(t.Context(), blob(1)))(t)
	defer b.Close()
	if text, err := io.ReadAll(b); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %q and %v, want a fault of kind Unavailable", text, err)
	}
	expect.OK(t, s.NoteRemoval(t.Context(), removed))
	if found, err := s.Removals(t.Context()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("removals: got %v and %v, want a fault of kind Unavailable", found, err)
	}
}

// TestAShorterObject replaces an object that is being read by a shorter one. The reader must not take the shorter
// object for the whole file.
func TestAShorterObject(t *testing.T) {
	s := open(t, s3test.Start(t, false, "files").Address("files"))
	expect.OK(t, s.Put(t.Context(), blob(1), strings.NewReader("0123456789")))
	b := expect.Get(s.Open(t.Context(), blob(1)))(t)
	defer b.Close()
	expect.OK(t, s.Put(t.Context(), blob(1), strings.NewReader("0123")))
	if text, err := io.ReadAll(b); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %q and %v, want a fault of kind Unavailable", text, err)
	}
}

// TestRequestsOfAReading counts the requests of a reader that looks where it is, reads on, and then goes back once.
func TestRequestsOfAReading(t *testing.T) {
	var requests atomic.Int32
	s := openBehind(t, s3test.Start(t, false, "files"), func(r *http.Response) error {
		if r.Request.Method == "GET" {
			requests.Add(1)
		}
		return nil
	})
	expect.OK(t, s.Put(t.Context(), blob(1), strings.NewReader("0123456789")))
	b := expect.Get(s.Open(t.Context(), blob(1)))(t)
	defer b.Close()
	first := make([]byte, 1)
	if n, err := b.Read(first); n != 1 || err != nil || first[0] != '0' {
		t.Fatalf("got %d bytes, %q and %v, want the first byte", n, first, err)
	}
	if at, err := b.Seek(0, io.SeekCurrent); at != 1 || err != nil {
		t.Fatalf("got %d and %v, want the place 1", at, err)
	}
	rest, err := io.ReadAll(b)
	if err != nil || string(rest) != "123456789" {
		t.Errorf("got %q and %v, want the other bytes", rest, err)
	}
	expect.Get(b.Seek(7, io.SeekStart))(t)
	if rest, err = io.ReadAll(b); err != nil || string(rest) != "789" {
		t.Errorf("got %q and %v, want the last bytes", rest, err)
	}
	expect.Equal(t, requests.Load(), 2, "requests")
}

// TestEndedContext checks that no operation reports success after its context or its time limit has ended.
func TestEndedContext(t *testing.T) {
	s := open(t, s3test.Start(t, false, "files").Address("files"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	short := *s
	short.timeout = 0
	for _, c := range []struct {
		what string
		do   func(context.Context, *Store) error
	}{
		{"open", func(ctx context.Context, s *Store) error { _, err := s.Open(ctx, blob(1)); return err }},
		{"remove", func(ctx context.Context, s *Store) error { return s.Remove(ctx, blob(1)) }},
		{"names", func(ctx context.Context, s *Store) error { _, err := s.Names(ctx, "", 9); return err }},
		{"listed", func(ctx context.Context, s *Store) error { _, err := s.Removed(ctx, "", 9); return err }},
		{"noted", func(ctx context.Context, s *Store) error { _, err := s.Removals(ctx); return err }},
	} {
		expect.Equal(t, c.do(ended, s), context.Canceled, "%s", c.what)
		expect.Fault(t, c.do(t.Context(), &short), fault.Unavailable, "%s without time", c.what)
	}
}

// TestAListingOfEverything has an object store that ignores where a listing begins and how long it may be, and lists
// keys of others.
func TestAListingOfEverything(t *testing.T) {
	ids := []string{strings.Repeat("1", 32), strings.Repeat("2", 32), strings.Repeat("3", 32)}
	s := openAt(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prefix, end := "", "-0123456789abcdef"
		if r.URL.Query().Get("prefix") == removals {
			prefix, end = removals, ""
		}
		io.WriteString(w, "<ListBucketResult>")
		for _, key := range []string{"!about", ids[0] + end, ids[1] + end, ids[2] + end, "readme"} {
			fmt.Fprintf(w, "<Contents><Key>%s%s</Key></Contents>", prefix, key)
		}
		io.WriteString(w, "</ListBucketResult>")
	})))
	for _, c := range []struct{ after, limit int }{{-1, 9}, {-1, 2}, {0, 9}, {0, 1}, {2, 9}} {
		after, name := "", ""
		if c.after >= 0 {
			after, name = ids[c.after], ids[c.after]+"-0123456789abcdef"
		}
		want := ids[c.after+1:]
		want = want[:min(c.limit, len(want))]
		got, err := s.Removed(t.Context(), after, c.limit)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("removed after %q: got %q and %v, want %q", after, got, err, want)
		}
		got, err = s.Names(t.Context(), name, c.limit)
		for i := range got {
			got[i] = strings.TrimSuffix(got[i], "-0123456789abcdef")
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("names after %q: got %q and %v, want %q", name, got, err, want)
		}
	}
}

// TestADamagedRemoval has a removal that cannot be read, and another object beside it. A removed file must not come
// back because of it.
func TestADamagedRemoval(t *testing.T) {
	s := open(t, s3test.Start(t, false, "files").Address("files"))
	for _, c := range []struct {
		key     string
		damaged bool
	}{{"readme", false}, {removed.ID, true}} {
		expect.OK(t, s.put(t.Context(), removals+c.key, strings.NewReader("{}"), 2))
		if found, err := s.Removals(t.Context()); len(found) > 0 || (err != nil) != c.damaged {
			t.Errorf("with %s: got %v and %v, want an error: %t", c.key, found, err, c.damaged)
		}
	}
}

// TestAFullStore checks which answers of an object store say that it is full. Clients see them as 507.
func TestAFullStore(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   bool
	}{
		{http.StatusInsufficientStorage, "Other", true}, {http.StatusForbidden, "QuotaExceeded", true},
		{http.StatusForbidden, "XMinioStorageFull", true}, {http.StatusForbidden, "InsufficientStorage", true},
		{http.StatusForbidden, "AccessDenied", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", c.code)
		}))
		err := openAt(t, server).Put(t.Context(), blob(1), strings.NewReader("x"))
		if err == nil || errors.Is(err, file.ErrFull) != c.want {
			t.Errorf("%d %s: got %v, want %v: %t", c.status, c.code, err, file.ErrFull, c.want)
		}
	}
}

// TestNoSpool removes the directory of uploads. An upload must fail, and leave nothing in the store.
func TestNoSpool(t *testing.T) {
	s := open(t, s3test.Start(t, false, "files").Address("files"))
	expect.OK(t, os.Remove(s.spool))
	expect.Err(t, s.Put(t.Context(), blob(1), strings.NewReader("x")), fs.ErrNotExist, "")
	expect.ErrOf(t, file.ErrNotFound, "")(s.Open(t.Context(), blob(1)))
}

// TestNoBucket checks that a missing bucket and a missing file cause different errors.
func TestNoBucket(t *testing.T) {
	server := s3test.Start(t, false)
	s := open(t, server.Address("missing"))
	expect.Fault(t, s.Put(t.Context(), blob(1), strings.NewReader("x")), fault.Unavailable, "")
	expect.FaultOf(t, fault.Unavailable, "removals")(s.Removals(t.Context()))
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Address // the zero value: want an error
	}{
		{"s3+https://s3.example/files", Address{"s3.example", "files", "", "us-east-1", true}},
		{"s3+http://127.0.0.1:9000/files/a/b/", Address{"127.0.0.1:9000", "files", "a/b/", "us-east-1", false}},
		{"s3+https://s3.example/files?region=eu-1", Address{"s3.example", "files", "", "eu-1", true}},
		{"s3+https://s3.example", Address{}},
		{"s3+https://s3.example/", Address{}},
		{"s3+https:///files", Address{}},
		{"s3+ftp://s3.example/files", Address{}},
		{"s3+https://user:hunter2@s3.example/files", Address{}},
		{"s3+https://s3.example/files?regoin=hunter2", Address{}},
		{"s3+https://user:hunter2@s3.example:port/files", Address{}},
		{"/srv/files", Address{}},
	} {
		if IsAddress(c.text) != strings.HasPrefix(c.text, "s3") {
			t.Errorf("%s: got %t, want that only a path is no address", c.text, IsAddress(c.text))
		}
		got, err := Parse(c.text)
		if got != c.want || (err == nil) != (c.want != Address{}) {
			t.Errorf("%s: got %+v and %v, want %+v", c.text, got, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %q, want an error without the text", c.text, err)
		}
	}
}

// TestNoHost checks that Open fails for a host that no client can have.
func TestNoHost(t *testing.T) {
	for _, pair := range s3test.Environment {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	if s, err := Open(Address{host: "no host", bucket: "files"}, "", timeout); s != nil || err == nil {
		t.Errorf("got %v and %v, want an error", s, err)
	}
}

// TestNoCredentials checks that Open fails without credentials. Requests without credentials would fail in the
// same way as requests for a lost bucket.
func TestNoCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
	expect.FailsOf(t, "")(Open(Address{host: "s3.example", bucket: "files"}, "", timeout))
}

// TestAStoreThatTakesNothing uploads to an object store that never answers an upload, and to one that takes the bytes
// more slowly than the whole time of silence. The first upload must end, and not only with its context.
func TestAStoreThatTakesNothing(t *testing.T) {
	for _, takes := range []bool{false, true} {
		end := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !takes {
				<-end
				return
			}
			for range 4 {
				time.Sleep(700 * time.Millisecond)
				_, _ = io.CopyN(io.Discard, r.Body, 8<<20)
			}
			w.Header().Set("ETag", `"x"`)
		}))
		s := openAt(t, server)
		s.timeout = 2 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := s.Put(ctx, blob(1), io.LimitReader(zeros{}, 32<<20))
		want := map[bool]fault.Kind{false: fault.Unavailable}[takes]
		if fault.KindOf(err) != want || (err == nil) != takes {
			t.Errorf("takes: %t: got %v, want success or a fault of kind Unavailable", takes, err)
		}
		cancel()
		close(end)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
