package s3store

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/storetest"
	"asset-registry/shared/fault"
	"asset-registry/shared/s3test"
)

const timeout = 5 * time.Second

func open(t *testing.T, address string) *Store {
	t.Helper()
	a, err := Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(a, t.TempDir(), timeout)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	server := s3test.Start(t, false, "files", "others")
	t.Run("a bucket", func(t *testing.T) { storetest.RunBytes(t, open(t, server.Address("files"))) })
	// Keys outside of the prefix belong to others.
	beside := open(t, server.Address("others"))
	if err := beside.Put(t.Context(), blob(1), strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
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
	if err := s.client.EnableVersioning(t.Context(), "files"); err != nil {
		t.Fatal(err)
	}
	storetest.RunBytes(t, s)
	for range 3 {
		if err := s.Put(t.Context(), blob(2), strings.NewReader("secret")); err != nil {
			t.Fatal(err)
		}
	}
	if got := versions(t, s); got != 3 {
		t.Fatalf("got %d versions, want 3", got)
	}
	if err := s.Remove(t.Context(), blob(2)); err != nil {
		t.Fatal(err)
	}
	if got := versions(t, s); got != 0 {
		t.Errorf("got %d versions after the removal, want none", got)
	}
}

// versions returns the number of versions of all blobs.
func versions(t *testing.T, s *Store) (n int) {
	t.Helper()
	for o := range s.client.Client.ListObjects(t.Context(), s.bucket, listVersions(s.prefix)) {
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
	if err := s.Put(t.Context(), blob(1), strings.NewReader("before")); err != nil {
		t.Fatal(err)
	}
	half, err := s.Open(t.Context(), blob(1))
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	for what, do := range map[string]func() error{
		"put":    func() error { return s.Put(t.Context(), blob(2), strings.NewReader("x")) },
		"open":   func() error { _, err := s.Open(t.Context(), blob(1)); return err },
		"read":   func() error { _, err := io.ReadAll(half); return err },
		"remove": func() error { return s.Remove(t.Context(), blob(1)) },
		"names":  func() error { _, err := s.Names(t.Context(), "", 9); return err },
		"age":    func() error { _, err := s.IsBefore(t.Context(), blob(1), time.Now()); return err },
		"note":   func() error { return s.NoteRemoval(t.Context(), file.File{ID: strings.Repeat("1", 32)}) },
		"noted":  func() error { _, err := s.Removals(t.Context()); return err },
		"listed": func() error { _, err := s.Removed(t.Context(), "", 9); return err },
	} {
		if err := do(); fault.KindOf(err) != fault.Unavailable || errors.Is(err, file.ErrNotFound) {
			t.Errorf("%s: got %v, want a fault of kind Unavailable", what, err)
		}
	}
	server.Restart()
	b, err := s.Open(t.Context(), blob(1))
	if err != nil {
		t.Fatal(err)
	}
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
	t.Cleanup(server.Close)
	for i, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, fmt.Sprint("key", i))
	}
	a, err := Parse(strings.Replace(server.URL, "http", "s3+http", 1) + "/files")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(a, t.TempDir(), 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"removals": func() error { _, err := s.Removals(t.Context()); return err },
		"names":    func() error { _, err := s.Names(t.Context(), "", 9); return err },
		"remove":   func() error { return s.Remove(t.Context(), blob(1)) },
	} {
		if err := do(); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: got %v, want a fault of kind Unavailable", what, err)
		}
	}
}

// TestNoBucket checks that a missing bucket and a missing file cause different errors.
func TestNoBucket(t *testing.T) {
	server := s3test.Start(t, false)
	s := open(t, server.Address("missing"))
	if err := s.Put(t.Context(), blob(1), strings.NewReader("x")); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v, want a fault of kind Unavailable", err)
	}
	if _, err := s.Removals(t.Context()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("removals: got %v, want a fault of kind Unavailable", err)
	}
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
		{"/srv/files", Address{}},
	} {
		got, err := Parse(c.text)
		if got != c.want || (err == nil) != (c.want != Address{}) {
			t.Errorf("%s: got %+v and %v, want %+v", c.text, got, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %q, want an error without the text", c.text, err)
		}
	}
}

// TestNoCredentials checks that Open fails without credentials. Requests without credentials would fail in the
// same way as requests for a lost bucket.
func TestNoCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
	if _, err := Open(Address{host: "s3.example", bucket: "files"}, "", timeout); err == nil {
		t.Error("got no error, want one")
	}
}
