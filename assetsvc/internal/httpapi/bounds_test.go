package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fair"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// publish publishes an asset whose texts have the given size, in bytes, in total. It returns the asset's id.
func (s service) publish(t *testing.T, size int) (id string) {
	t.Helper()
	text := strings.Replace(validAsset, `"description":"x"`,
		fmt.Sprintf(`"description":%q`, strings.Repeat("d", min(size, 250_000))), 1)
	path := s.publishedAs(t, text)
	for size -= 250_000; size > 0; size -= 250_000 {
		const document = `{"data":{"documentType":"notice","title":"x","url":"https://example.org/x","description":%q}}`
		s.do(t, exchange{"POST", path + "/documents", identity.Broker, "token",
			fmt.Sprintf(document, strings.Repeat("t", min(size, 250_000))), 201, ""})
	}
	return strings.TrimPrefix(path, "/api/2.5/assets/")
}

// page has the members of a page that the tests read.
type page struct {
	Data []map[string]any
	Next struct{ Path string } `json:"next_page"`
}

func (s service) page(t *testing.T, path string) (p page) {
	t.Helper()
	expect.OK(t, json.Unmarshal(s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.Bytes(), &p))
	return p
}

// Promises: page-size
func TestPagesWithBodiesAreBounded(t *testing.T) {
	s := newService(t)
	var all []string
	for _, size := range []int{10, 900_000, 900_000, 900_000, 900_000, 900_000, 3_900_000, 10, 10} {
		all = append(all, s.publish(t, size))
	}
	var got [][]string
	for path := "/api/2.5/assets?opt_fields=*&limit=1000"; ; {
		p := s.page(t, path)
		if len(p.Data) == 0 {
			break
		}
		var ids []string
		for _, a := range p.Data {
			ids = append(ids, a["id"].(string))
		}
		got, path = append(got, ids), p.Next.Path
	}
	expect.NoDiff(t, cmp.Diff([][]string{all[:5], all[5:6], all[6:]}, got), "the pages of at most 4 MiB differ")
	if p := s.page(t, "/api/2.5/assets?limit=1000"); len(p.Data) != len(all) {
		t.Errorf("got %d entries without fields, want %d", len(p.Data), len(all))
	}
}

// TestARequestReservesMemory leaves free just as much memory as a request needs, and then one byte less. In the second
// case the request must be refused, unless it needs no memory.
func TestARequestReservesMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1 << 30)
		s := newServiceWith(t, m)
		small, middle := "/api/2.5/assets/"+s.publish(t, 10), "/api/2.5/assets/"+s.publish(t, 3*memory.Small)
		large := "/api/2.5/assets/" + s.publish(t, 900_000)
		in24 := func(path string) string { return strings.Replace(path, "2.5", "2.4", 1) }
		change := `{"data":{}}`
		for _, c := range []struct {
			name, method, path, body string
			need                     int64
		}{
			{"a small asset", "GET", small, "", 0},
			{"a small asset in version 2.4", "GET", in24(small) + "?opt_pretty=1", "", 0},
			{"a medium asset", "GET", middle, "", copies * medium},
			{"with a parameter of no option", "GET", middle + "?option=1", "", copies * medium},
			{"in version 2.4", "GET", in24(middle), "", trees * medium},
			{"indented", "GET", middle + "?opt_pretty=1", "", trees * medium},
			{"as a call", "GET", middle + "?opt_jsonp=f", "", trees * medium},
			{"its headers", "HEAD", middle + "?opt_jsonp=f", "", 0},
			{"its items", "GET", middle + "/items", "", trees * medium},
			{"its change", "PATCH", middle, change, trees * medium},
			{"a large asset", "GET", large, "", copies * registry.MaxAsset},
			{"a small body", "PATCH", small, change + strings.Repeat(" ", memory.Small-len(change)), 0},
			{"a medium body", "PATCH", small, change + strings.Repeat(" ", memory.Small), trees * medium},
			{"the largest medium body", "PATCH", small, change + strings.Repeat(" ", medium-len(change)), trees * medium},
			{"a large body", "PATCH", small, change + strings.Repeat(" ", medium), trees * registry.MaxAsset},
			{"a page", "GET", "/api/2.5/assets?opt_fields=id,,dateModified", "", 0},
			{"a page with fields", "GET", "/api/2.5/assets?opt_fields=id,status", "", copies * maxPage},
			{"a page with fields in version 2.4", "GET", "/api/2.4/assets?opt_fields=*", "", trees * maxPage},
		} {
			for _, free := range []int64{c.need, c.need - 1} {
				leave := expect.Get(m.Work.Acquire(t.Context(), "another", m.Work.Size()-max(free, 0)))(t)
				status := 200
				if free < c.need && c.need > 0 {
					status = 503
				}
				t.Log(c.name, "with", max(free, 0), "bytes free")
				s.do(t, exchange{c.method, c.path, identity.Broker, "token", c.body, status, ""})
				leave()
			}
		}
		if m.Answers.Used() != 0 || m.Work.Used() != 0 {
			t.Errorf("got %d and %d bytes held at the end, want 0", m.Answers.Used(), m.Work.Used())
		}
	})
}

// watched records an answer. Before each part of it, watched reads how much memory requests hold.
type watched struct {
	*httptest.ResponseRecorder
	work      *fair.Semaphore
	held      int64 // most bytes that were held during a write
	headed    int64 // bytes that were held when a header was last set
	deadlines int   // deadlines for the client that were set
}

func (w *watched) Header() http.Header {
	if w.Body.Len() == 0 {
		w.headed = w.work.Used()
	}
	return w.ResponseRecorder.Header()
}

func (w *watched) Write(p []byte) (int, error) {
	w.held = max(w.held, w.work.Used())
	return w.ResponseRecorder.Write(p)
}

func (w *watched) SetWriteDeadline(time.Time) error {
	w.deadlines++
	return nil
}

// TestAnAnswerIsSentWithoutMemoryForWork reads and changes assets. Large ones need memory until the answer is made. While
// an answer is sent, no memory for work may be held, because the client may be slow. A large answer has deadlines.
func TestAnAnswerIsSentWithoutMemoryForWork(t *testing.T) {
	m := NewMemory(1 << 30)
	s := newServiceWith(t, m)
	const api = "/api/2.5/assets"
	exact := api + "/" + s.publish(t, memory.Small)
	size := s.do(t, exchange{"GET", exact, "", "", "", 200, ""}).Body.Len()
	s.do(t, exchange{"PATCH", exact, identity.Broker, "token",
		fmt.Sprintf(`{"data":{"description":%q}}`, strings.Repeat("d", 2*memory.Small-size)), 200, ""})
	for _, e := range []exchange{
		{"GET", exact, "", "", "", memory.Small, ""},
		{"GET", api + "/" + s.publish(t, 10), "", "", "", 0, ""},
		{"GET", api, "", "", "", 0, ""},
		{"GET", api + "/" + s.publish(t, 3*memory.Small), "", "", "", 3 * memory.Small, ""},
		{"GET", api + "?opt_fields=*", "", "", "", 4 * memory.Small, ""},
		{"PATCH", api + "/" + s.publish(t, 3*memory.Small), identity.Broker, "token", `{"data":{"title":"y"}}`,
			3 * memory.Small, ""},
	} {
		least := e.status // least size of the answer
		w := &watched{ResponseRecorder: httptest.NewRecorder(), work: m.Work}
		e.status = 200
		s.answer(t, w, nil, e)
		got := w.Body.Len()
		if got < least || (least == memory.Small) != (got == memory.Small) {
			t.Errorf("%s %s: got %d bytes, want at least %d", e.method, e.path, got, least)
		}
		if needs := least > memory.Small; (w.headed > 0) != needs {
			t.Errorf("%s %s: got %d bytes held before the answer, want some: %t", e.method, e.path, w.headed, needs)
		}
		if w.held > 0 || (w.deadlines > 0) != (got > memory.Small) {
			t.Errorf("%s %s: got %d bytes held and %d deadlines for %d bytes, want none held, and deadlines for more than %d",
				e.method, e.path, w.held, w.deadlines, got, memory.Small)
		}
	}
}

// TestMemoryForAnswers holds almost all memory for answers. A read needs as much memory as its answer has. A change of
// a large asset must be refused before it is stored. A change of a small asset must be answered.
func TestMemoryForAnswers(t *testing.T) {
	m := NewMemory(0)
	s := newServiceWith(t, m)
	small, middle := "/api/2.5/assets/"+s.publish(t, 10), "/api/2.5/assets/"+s.publish(t, 3*memory.Small)
	held := m.Answers.Size()/4*3 - 4*memory.Small // large amounts may use three quarters
	expect.FatalIf(t, !m.Answers.Hold(held), "got no memory, want it free")
	change := `{"data":{"title":"y"}}`
	for _, e := range []exchange{
		{"GET", middle, "", "", "", 200, ""},
		{"PATCH", middle, identity.Broker, "token", change, 503, ""},
		{"GET", middle, "", "", "", 200, `"title":"x"`},
	} {
		s.do(t, e)
	}
	for ; m.Answers.Hold(1); held++ {
		for m.Answers.Hold(memory.Small) {
			held += memory.Small
		}
	}
	refused := s.do(t, exchange{"GET", small, "", "", "", 503, "too many large requests"}).Header()
	if refused.Get("Retry-After") == "" || refused.Get("ETag") != "" {
		t.Errorf("got the headers %v, want Retry-After and no ETag", refused)
	}
	s.do(t, exchange{"HEAD", small, "", "", "", 200, ""})
	s.do(t, exchange{"PATCH", small, identity.Broker, "token", change, 200, `"title":"y"`})
	m.Answers.Release(held)
	expect.Equal(t, m.Answers.Used(), 0, "bytes held at the end")
}

// TestNoReadingIsAnsweredWithoutMemory asks each route that shows an asset while there is no memory for answers. None
// may answer with 200 and without a body.
func TestNoReadingIsAnsweredWithoutMemory(t *testing.T) {
	m := NewMemory(1 << 30)
	s := newServiceWith(t, m)
	at := "/api/2.5/assets/" + s.publish(t, 10)
	shown := s.do(t, exchange{"GET", at, "", "", "", 200, ""}).Body.String()
	item := regexp.MustCompile(`"items":\[\{"id":"([0-9a-f]{32})"`).FindStringSubmatch(shown)
	expect.FatalIf(t, item == nil, "got %s, want an item with an id", shown)
	paths := []string{"/api/2.5/assets", "/api/2.5/assets?opt_fields=*", at, at + "/items", at + "/items/" + item[1],
		at + "/revisions"}
	for _, path := range paths {
		s.do(t, exchange{"GET", path, identity.Broker, "token", "", 200, `"data":`})
	}
	for m.Answers.Hold(memory.Small) || m.Answers.Hold(1) {
	}
	for _, path := range paths {
		s.do(t, exchange{"GET", path, identity.Broker, "token", "", 503, "errors"})
	}
}

func TestALargeAssetIsWrittenLikeASmallOne(t *testing.T) {
	s := newService(t)
	path := "/api/2.5/assets/" + s.publish(t, 3*memory.Small)
	s.do(t, exchange{"PATCH", path, identity.Broker, "token", `{"data":{"title_en":"new"}}`, 200, `"title_en":"new"`})
	s.do(t, exchange{"PATCH", path, identity.Broker, "wrong", `{"data":{"title_en":"other"}}`, 403, ""})
	s.do(t, exchange{"PATCH", path, identity.Broker, "token", `{"data":{"colour":"blue"}}`, 400, "colour"})
	s.do(t, exchange{"POST", path + "/decisions", identity.Broker, "token",
		`{"data":{"decisionDate":"2026-11-20","decisionID":"y"}}`, 201, `"decisionID":"y"`})
	tag := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Header().Get("ETag")
	s.doWith(t, http.Header{"If-None-Match": {tag}}, exchange{"GET", path, "", "", "", 304, ""})
	s.doWith(t, http.Header{"If-Match": {`"1-2.5"`}},
		exchange{"PATCH", path, identity.Broker, "token", `{"data":{"title_en":"late"}}`, 412, ""})
	s.do(t, exchange{"GET", path + "/revisions", identity.Administrator, "", "", 200, `"revision":4`})
}
