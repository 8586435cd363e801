package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
)

// publish publishes an asset whose texts have the given size, in bytes, in total. It returns the asset's id.
func (s service) publish(t *testing.T, size int) (id string) {
	t.Helper()
	text := strings.Replace(validAsset, `"description":"x"`,
		fmt.Sprintf(`"description":%q`, strings.Repeat("d", min(size, 250_000))), 1)
	made := s.do(t, exchange{"POST", "/api/2.5/assets", identity.Broker, "", text, 201, ""})
	var created struct{ Data struct{ ID string } }
	if err := json.Unmarshal(made.Body.Bytes(), &created); err != nil {
		t.Fatal(err)
	}
	path := "/api/2.5/assets/" + created.Data.ID
	s.do(t, exchange{"PATCH", path, identity.Broker, "token", `{"data":{"status":"pending"}}`, 200, ""})
	for size -= 250_000; size > 0; size -= 250_000 {
		const document = `{"data":{"documentType":"notice","title":"x","url":"https://example.org/x","description":%q}}`
		s.do(t, exchange{"POST", path + "/documents", identity.Broker, "token",
			fmt.Sprintf(document, strings.Repeat("t", min(size, 250_000))), 201, ""})
	}
	return created.Data.ID
}

// page has the members of a page that the tests read.
type page struct {
	Data []map[string]any
	Next struct{ Path string } `json:"next_page"`
}

func (s service) page(t *testing.T, path string) (p page) {
	t.Helper()
	if err := json.Unmarshal(s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff([][]string{all[:5], all[5:6], all[6:]}, got); diff != "" {
		t.Errorf("the pages of at most 4 MiB differ (-want +got):\n%s", diff)
	}
	if p := s.page(t, "/api/2.5/assets?limit=1000"); len(p.Data) != len(all) {
		t.Errorf("got %d entries without fields, want %d", len(p.Data), len(all))
	}
}

func TestAStarShowsAllFields(t *testing.T) {
	s := newService(t)
	id := s.publish(t, 10)
	for _, c := range []struct {
		version string
		hidden  bool
	}{{"2.4", true}, {"2.5", false}} {
		var read struct{ Data map[string]any }
		got := s.do(t, exchange{"GET", "/api/" + c.version + "/assets/" + id, "", "", "", 200, ""})
		if err := json.Unmarshal(got.Body.Bytes(), &read); err != nil {
			t.Fatal(err)
		}
		listed := s.page(t, "/api/"+c.version+"/assets?opt_fields=*").Data[0]
		if diff := cmp.Diff(read.Data, listed); diff != "" {
			t.Errorf("version %s: the listed asset differs (-want +got):\n%s", c.version, diff)
		}
		if _, shown := listed["rectificationPeriod"]; shown == c.hidden {
			t.Errorf("version %s shows rectificationPeriod: got %t, want %t", c.version, shown, !c.hidden)
		}
	}
}

func TestUnderLoadOnlyLargeRequestsAreRefused(t *testing.T) {
	m := NewMemory(0)
	s := newServiceWith(t, m)
	small, large := s.publish(t, 10), s.publish(t, 3_900_000)
	largePath := "/api/2.5/assets/" + large
	requests := []exchange{
		{"GET", largePath, "", "", "", 503, "too many large requests"},
		{"GET", "/api/2.4/assets/" + large, "", "", "", 503, "too many large requests"},
		{"GET", largePath + "?opt_pretty=1", "", "", "", 503, "too many large requests"},
		{"PATCH", largePath, identity.Broker, "token", `{"data":{"title_en":"new"}}`, 503, "too many large requests"},
		{"POST", largePath + "/decisions", identity.Broker, "token",
			`{"data":{"decisionDate":"2026-11-20","decisionID":"y"}}`, 503, "too many large requests"},
		{"GET", "/api/2.5/assets/" + small, "", "", "", 200, small},
		{"GET", "/api/2.5/assets", "", "", "", 200, small},
		{"PATCH", "/api/2.5/assets/" + small, identity.Broker, "token", `{"data":{"title_en":"new"}}`, 200, "new"},
	}
	t.Run("when answers hold all memory", func(t *testing.T) {
		held := m.Answers.Size() / 4 * 3
		m.Answers.Hold(held)
		defer m.Answers.Release(held)
		for _, e := range requests {
			if got := s.do(t, e); e.status == 503 &&
				(got.Header().Get("Retry-After") == "" || got.Header().Get("ETag") != "") {
				t.Errorf("%s %s: got headers %v, want Retry-After and no ETag", e.method, e.path, got.Header())
			}
		}
	})
	t.Run("when running requests hold all memory", func(t *testing.T) {
		leave, err := m.Work.Acquire(t.Context(), m.Work.Size())
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		for _, e := range requests[3:] { // skip some: each large request waits for memory, which takes time
			s.do(t, e)
		}
	})
	t.Run("refused writes change nothing", func(t *testing.T) {
		got := s.do(t, exchange{"GET", largePath, "", "", "", 200, ""}).Body.String()
		if strings.Contains(got, `"title_en":"new"`) || strings.Contains(got, `"decisionID":"y"`) {
			t.Errorf("got %.200s, want the asset without the refused writes", got)
		}
	})
	if m.Answers.Used() != 0 || m.Work.Used() != 0 {
		t.Errorf("got %d and %d bytes held at the end, want 0", m.Answers.Used(), m.Work.Used())
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
