package filesvc

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// writerFunc is a function that takes what is written.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestLists lists, page by page, the files of a broker, and for the administrator the files of all brokers.
// Nobody else may see files of another broker.
// Promises: files-list
func TestLists(t *testing.T) {
	lines := make(chan string, 1000)
	log := slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		lines <- string(line)
		return len(line), nil
	}), nil))
	r := start(t, func(c *Config) { c.Log = log })
	admin := identity.Identity{Broker: "operator", KeyID: "k9", Role: identity.Administrator}
	for _, text := range []string{"a", "bb"} {
		r.upload(broker, "/upload", "a.txt", "text/plain", text).is(t, "upload", 200, "")
	}
	r.upload(another, "/upload", "b.txt", "text/plain", "ccc").is(t, "upload", 200, "")
	r.register(broker, `{"data":{"hash":"`+hash("x")+`"}}`).is(t, "register", 201, "")
	type entry struct {
		ID, Broker, State, Hash, SHA256, Title, Format, Reason string
		Size                                                   int64
	}
	list := func(by identity.Identity, query string) (all []entry) {
		t.Helper()
		for path := "/get?" + query; ; {
			got := r.get(by, path)
			got.is(t, path, 200, "")
			var page struct {
				Data []entry
				Next struct{ Path string } `json:"next_page"`
			}
			if err := json.Unmarshal([]byte(got.text), &page); err != nil || len(page.Data) > 100 {
				t.Fatalf("got %s, %v, want a page", got.text, err)
			}
			all = append(all, page.Data...)
			if path = page.Next.Path; path == "" {
				return all
			}
			if strings.Contains(query, "broker=") != strings.Contains(path, "broker=") {
				t.Errorf("%q: got the next page %q, want it of the same brokers", query, path)
			}
		}
	}
	for _, query := range []string{"", "limit=1", "limit=1000"} {
		states := map[string]int{}
		for _, f := range list(broker, query) {
			states[f.State]++
			if f.Broker != broker.Broker || f.Reason != "" || (f.Format == "") != (f.State == "registered") {
				t.Errorf("got %+v, want files of the broker", f)
			}
		}
		if states["stored"] != 2 || states["registered"] != 1 || len(states) != 2 {
			t.Errorf("%q: got %v, want the files of the broker", query, states)
		}
	}
	if got := list(admin, "broker="+another.Broker); len(got) != 1 || got[0].Hash != hash("ccc") || got[0].Size != 3 ||
		got[0].Title != "b.txt" || got[0].Format != "text/plain" || len(got[0].SHA256) != 64 {
		t.Errorf("got %+v, want the file of the other broker", got)
	}
	if got := list(admin, "limit=1&broker="+broker.Broker); len(got) != 3 {
		t.Errorf("got %+v, want the files of one broker on all pages", got)
	}
	removed := list(admin, "broker="+another.Broker)[0].ID
	said := r.send(admin, http.MethodDelete, "/get/"+removed+"?reason=x", "", nil)
	if said.status != 200 || said.field(t, "data", "id") != removed || said.field(t, "data", "reason") != "x" ||
		said.field(t, "data", "removed_by") != "k9" || len(said.field(t, "data", "sha256")) != 64 {
		t.Errorf("got %d %s, want what was removed, by whom and why", said.status, said.text)
	}
	for told := false; !told; { // the line is there before the answer
		select {
		case line := <-lines:
			told = strings.Contains(line, "a file was removed") && strings.Contains(line, removed) && strings.Contains(line, "by=k9")
		default:
			t.Fatal("got no line in the log about the removal, want one")
		}
	}
	if got := list(admin, ""); len(got) != 4 {
		t.Errorf("got %+v, want all four files", got)
	}
	if got := list(admin, "broker="+another.Broker); got[0].State != "removed" || got[0].Reason != "x" {
		t.Errorf("got %+v, want it removed and the reason", got)
	}
	if got := list(another, ""); got[0].State != "removed" || got[0].Reason != "" {
		t.Errorf("got %+v, want it removed, without the reason", got)
	}
	r.get(nobody, "/get").is(t, "anonymous", 401, "header/Authorization/An API key is needed.")
	r.get(broker, "/get?broker="+another.Broker).
		is(t, "another broker's", 403, "url/permission/Forbidden: only the administrator lists files of other brokers.")
	r.get(broker, "/get?limit=99999999999999999999").
		is(t, "long limit", 400, "querystring/limit/The limit must be a number from 1 to 100.")
	for _, list := range []string{"/get", "/get/removed"} {
		for sent, name := range map[string]string{"after=%zz": "after", "limit=1;": "limit", "%zz": "query",
			"limit=1&limit=2": "limit", "after=%ff": "after", "brokers=x": "brokers", "brokers=x&limit=0": "limit"} {
			got := r.get(broker, list+"?"+sent)
			if got.status != 400 || !strings.Contains(got.text, `"name":"`+name+`"`) {
				t.Errorf("%s?%s: got %d %s, want 400 that names %s", list, sent, got.status, got.text, name)
			}
		}
		r.get(broker, list+"?opt_pretty=1&limit=&limit=5&x=&_=1").is(t, "what means nothing", 200, "")
	}
	r.get(broker, "/get?limit=x").is(t, "limit", 400, "querystring/limit/The limit must be a number from 1 to 100.")
}

// TestRemovedFilesAreListed takes files down and reads the list of removals page by page, as a mirror does. The list
// must have the ids of these files, and nothing else.
// Promises: files-removed
func TestRemovedFilesAreListed(t *testing.T) {
	r := start(t, same)
	admin := identity.Identity{Broker: "operator", KeyID: "k9", Role: identity.Administrator}
	list := func(limit int) (ids []string) {
		t.Helper()
		for path := fmt.Sprintf("/get/removed?limit=%d", limit); path != ""; {
			got := r.get(nobody, path)
			got.is(t, path, 200, "")
			var page struct {
				Data []map[string]string
				Next struct{ Path string } `json:"next_page"`
			}
			if err := json.Unmarshal([]byte(got.text), &page); err != nil || len(page.Data) > limit {
				t.Fatalf("got %s, %v, want a page of at most %d", got.text, err, limit)
			}
			for _, f := range page.Data {
				expect.ErrorIf(t, len(f) != 1, "got %v, want the id alone", f)
				ids = append(ids, f["id"])
			}
			if path = page.Next.Path; strings.Contains(path, "broker") {
				t.Errorf("got the next page %q, want only the request's parameters", path)
			}
		}
		return ids
	}
	if got := list(2); len(got) != 0 {
		t.Errorf("got %q, want no removed file", got)
	}
	var want []string
	for i := range 5 {
		got := r.upload(broker, "/upload", "a.txt", "text/plain", fmt.Sprint(i))
		got.is(t, "upload", 200, "")
		id := got.field(t, "data", "url")[len(base)+5:][:32]
		if i == 0 {
			continue // this file is not removed
		}
		want = append(want, id)
		slices.Sort(want)
		r.send(admin, http.MethodDelete, "/get/"+id+"?reason=secret", "", nil).is(t, "remove", 200, "")
		for _, limit := range []int{1, 2, 1000} {
			if got := list(limit); !slices.Equal(got, want) {
				t.Errorf("limit %d: got %q, want %q", limit, got, want)
			}
		}
	}
	r.get(nobody, "/get/removed?limit=0").is(t, "limit", 400, "querystring/limit/The limit must be a number from 1 to 1000.")
	r.get(nobody, "/get/removed?after=../x").
		is(t, "after", 400, "querystring/after/It must be the id of a file: 32 digits from 0 to f.")
	r.send(admin, http.MethodDelete, "/get/removed?reason=x", "", nil).is(t, "no file", 404, "url/doc_id/Not Found")
}
