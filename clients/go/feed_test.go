package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

const lostBody = `{"status":"error","errors":[{"location":"querystring","name":"offset","description":"Offset expired"}]}`

var (
	first = reply{200, `{"data":[{"id":"a"},{"id":"b"}],"next_page":{"offset":"2"}}`,
		map[string]string{"Set-Cookie": "SERVER_ID=old; Path=/"}}
	second = reply{200, `{"data":[{"id":"c"}],"next_page":{"offset":"3"},"prev_page":{"offset":"1"}}`, nil}
	empty  = reply{200, `{"data":[],"next_page":{"offset":"3"}}`, nil}
	lost   = reply{404, lostBody, map[string]string{"Set-Cookie": "SERVER_ID=new"}}
)

func ids(page Page) (found []string) {
	for _, a := range page.Assets {
		found = append(found, a.ID)
	}
	return found
}

func TestPagesReadsToTheEndOfTheFeed(t *testing.T) {
	r := newRegistry(t, first, second, empty)
	var found []string
	var last Position
	feed := Feed{Limit: 2, Mode: AllModes, Fields: []string{"title", "status"}}
	for page, err := range r.client(t).Pages(t.Context(), feed) {
		must(t, err)
		found, last = append(found, ids(page)...), page.Next
	}
	errorIf(t, !slices.Equal(found, []string{"a", "b", "c"}) || last != (Position{"3", "old"}),
		"got %q up to %v, want a, b, c up to 3", found, last)
	r.check(t,
		"GET /api/2.5/assets?limit=2&mode=_all_&opt_fields=title%2Cstatus",
		"GET /api/2.5/assets?limit=2&mode=_all_&offset=2&opt_fields=title%2Cstatus",
		"GET /api/2.5/assets?limit=2&mode=_all_&offset=3&opt_fields=title%2Cstatus")
	if a, b := r.heads()[0].Get("Cookie"), r.heads()[1].Get("Cookie"); a != "" || b != "SERVER_ID=old" {
		t.Errorf("got cookies %q and %q, want none and SERVER_ID=old", a, b)
	}
}

func TestPagesEndWithAnError(t *testing.T) {
	r := newRegistry(t, first, reply{400, busyBody, nil})
	var errs []error
	for _, err := range r.client(t).Pages(t.Context(), Feed{}) {
		errs = append(errs, err)
	}
	errorIf(t, len(errs) != 2 || errs[0] != nil || !IsInvalid(errs[1]), "got %v, want a page and a 400", errs)
}

func TestAPageLinksBack(t *testing.T) {
	page, err := newRegistry(t, second).client(t).Page(t.Context(), Feed{Descending: true})
	errorIf(t, err != nil || page.Prev == nil || page.Prev.Offset != "1",
		"got %+v, %v, want Prev with offset 1", page, err)
}

func TestFollowPausesAtTheEndAndContinues(t *testing.T) {
	const pause = 20 * time.Millisecond
	r := newRegistry(t, first, empty, empty, second)
	var found []string
	begun := time.Now()
	for page, err := range r.client(t).Follow(t.Context(), Feed{}, pause) {
		must(t, err)
		if found = append(found, ids(page)...); len(found) == 3 {
			break
		}
	}
	errorIf(t, len(r.sent()) != 4 || !slices.Equal(found, []string{"a", "b", "c"}),
		"got %q in %d requests, want a, b, c in 4", found, len(r.sent()))
	if took := time.Since(begun); took < 2*pause {
		t.Errorf("got to the end in %v, want two pauses of %v", took, pause)
	}
	begun = time.Now()
	live(t, newStreams(t, sends(entry("1")), waits(entry("2"))).client(t), Feed{}, 2)
	if took := time.Since(begun); took < firstPause {
		t.Errorf("got the stream after the end of another in %v, want a pause of %v", took, firstPause)
	}
}

func TestFollowStartsOverOnOtherData(t *testing.T) {
	r := newRegistry(t, lost, first, empty)
	var told, pages int
	feed := Feed{Position: Position{Offset: "9", ServerID: "old"}}
	for _, err := range r.client(t).Follow(t.Context(), feed, time.Millisecond) {
		switch {
		case errors.Is(err, ErrStartOver):
			told++
		case err != nil:
			t.Fatal(err)
		default:
			pages++
		}
		if pages == 2 {
			break
		}
	}
	r.check(t, "GET /api/2.5/assets?offset=9", "GET /api/2.5/assets", "GET /api/2.5/assets?offset=2")
	if cookie := r.heads()[0].Get("Cookie"); told != 1 || cookie != "SERVER_ID=old" ||
		r.heads()[1].Get("Cookie") != "" {
		t.Errorf("got ErrStartOver %d times and first cookie %q, want once and SERVER_ID=old", told, cookie)
	}
}

func TestFollowPausesBeforeItStartsOverAgain(t *testing.T) {
	r := newRegistry(t, lost)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for range r.client(t).Follow(ctx, Feed{Position: Position{Offset: "9"}}, time.Hour) {
	}
	if got := len(r.sent()); got != 2 {
		t.Errorf("got %d requests, want 2 before the pause", got)
	}
}

func TestAnother404DoesNotStartOver(t *testing.T) {
	feed := Feed{Position: Position{Offset: "9"}}
	_, err := newRegistry(t, reply{404, busyBody, nil}).client(t).Page(t.Context(), feed)
	errorIf(t, errors.Is(err, ErrStartOver) || !IsNotFound(err), "got %v, want a 404 without ErrStartOver", err)
}

func TestFollowRepeatsAPageAfterAnError(t *testing.T) {
	r := newRegistry(t, first, reply{500, busyBody, nil}, second)
	var errs int
	for page, err := range r.client(t).Follow(t.Context(), Feed{}, time.Millisecond) {
		if err != nil {
			errs++
		} else if page.Next.Offset == "3" {
			break
		}
	}
	errorIf(t, errs != 1, "got %d errors, want 1", errs)
	r.check(t, "GET /api/2.5/assets", "GET /api/2.5/assets?offset=2", "GET /api/2.5/assets?offset=2")
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range newRegistry(t, empty).client(t).Follow(ctx, Feed{}, time.Hour) {
		last = err
		cancel()
	}
	errorIf(t, !errors.Is(last, context.Canceled), "got %v, want context.Canceled", last)
}

func TestRevisionsGoBackPageByPage(t *testing.T) {
	r := newRegistry(t,
		reply{200, `{"data":[{"revision":3,"changes":[{"op":"replace","path":"/title","value":"x"}]},
			{"revision":2,"changesSize":40000}],"next_page":{"offset":"2"}}`, nil},
		reply{200, `{"data":[{"revision":1}],"next_page":{"offset":"1"}}`, nil},
		reply{200, `{"data":[],"next_page":{"offset":"1"}}`, nil})
	var found []int64
	for revision, err := range r.client(t).Revisions(t.Context(), "a1", "tok") {
		must(t, err)
		found = append(found, revision.Revision)
	}
	errorIf(t, !slices.Equal(found, []int64{3, 2, 1}) || r.heads()[0].Get("X-Access-Token") != "tok",
		"got revisions %v, want 3, 2, 1 and the token in the request", found)
	r.check(t, "GET /api/2.5/assets/a1/revisions", "GET /api/2.5/assets/a1/revisions?offset=2",
		"GET /api/2.5/assets/a1/revisions?offset=1")
}
