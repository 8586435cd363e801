package search

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// costly returns queries that cost as much as possible, within the limits and beyond them.
func costly() []string {
	words := url.QueryEscape(strings.TrimSpace(strings.Repeat("опис ", 16)))
	facets := "&facets=status,classification,region,locality,custodian&facet_limit=100&limit=100"
	var many strings.Builder
	for i := range 10 {
		fmt.Fprintf(&many, "&region=%d&locality=%d&custodian=%d&owner=%d&type=%d", i, i, i, i, i)
	}
	var long strings.Builder // the maximum number of filters of a query, each as long as an address allows
	for i := range 10 {
		for _, name := range []string{"region", "locality", "custodian", "owner", "type"} {
			fmt.Fprintf(&long, "&%s=%d%s", name, i, strings.Repeat("x", 199))
		}
	}
	return []string{
		long.String(), "region=" + strings.Repeat("%EF%B7%BA", 200) + "&locality=" + strings.Repeat("%EF%B7%BA", 200),
		"q=" + words + facets, facets[1:], "q=" + words + facets + many.String(), "sort=published" + facets,
		"q=" + url.QueryEscape("будинок приміщення опис") + "&quantity_from=0&published_from=2000-01-01" + facets,
		"q=" + strings.Repeat("a+", 5000), "q=" + strings.Repeat("%D0%B0", 3000), "limit=1000000", strings.Repeat("region=x&", 2000),
		"q=" + strings.Repeat("%EF%B7%BA", 256), "q=" + strings.Repeat("%EF%B7%BA", 4) + facets, "q=" + strings.Repeat("a.", 128),
		"q=*", "q=%2A%2A%2A", "q=" + url.QueryEscape("/.*/ ~2 ^9 (a OR b) [1 TO 2]"), "search_after=" + strings.Repeat("A", 5000),
	}
}

// TestHostileSearchersDelayOthersAndNothingElse sends costly queries from many clients. Meanwhile it sends simple
// queries. They may be answered late, but some must be answered.
func TestHostileSearchersDelayOthersAndNothingElse(t *testing.T) {
	s := newStage(t)
	for i := range 50 {
		created := expect.Get(s.registry.Create(t.Context(), asset(fmt.Sprint("Будинок ", i))))(t)
		expect.Get(s.registry.Publish(t.Context(), created.Asset.ID, client.Write{Token: created.Access.Token}))(t)
	}
	s.awaitEqual(t)
	ctx, end := context.WithTimeout(t.Context(), 5*time.Second)
	defer end()
	statuses, mu := map[int]int{}, sync.Mutex{}
	var attacking sync.WaitGroup
	questions := costly()
	for n := range 100 {
		attacking.Go(func() {
			for i := n; ctx.Err() == nil; i++ {
				status := ask(ctx, "http://"+s.addr+"/api/2.5/search?"+questions[i%len(questions)])
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			}
		})
	}
	answered := 0
	for ctx.Err() == nil {
		if ask(ctx, "http://"+s.addr+"/api/2.5/search?q=42") == http.StatusOK {
			answered++
		}
		time.Sleep(20 * time.Millisecond)
	}
	attacking.Wait()
	t.Logf("answers to the attack by status: %v; simple questions answered: %d", statuses, answered)
	for status := range statuses {
		switch status {
		case 0, http.StatusOK, http.StatusBadRequest, http.StatusServiceUnavailable, http.StatusRequestHeaderFieldsTooLarge:
		default:
			t.Errorf("got the status %d, want 200, 400, 431 or 503", status)
		}
	}
	if answered == 0 {
		t.Error("got no answer to a simple question during the attack, want some")
	}
	s.awaitEqual(t)
}

// TestNoQuestionCostsMuch prints how much processor time one answer needs. The test fails only at a limit that is
// much higher than usual, so that it passes on a busy machine.
func TestNoQuestionCostsMuch(t *testing.T) {
	s := newStage(t)
	for i := range 20 {
		created := expect.Get(s.registry.Create(t.Context(), asset(fmt.Sprint("Опис будинку ", i))))(t)
		expect.Get(s.registry.Publish(t.Context(), created.Asset.ID, client.Write{Token: created.Access.Token}))(t)
	}
	s.awaitEqual(t)
	const times = 20
	for _, path := range []string{"/api/2.5/search?", "/uk/?", "/en/feed.atom?"} {
		for _, question := range costly() {
			before := processorTime(t, s.service.ID())
			for range times {
				ask(t.Context(), "http://"+s.addr+path+question)
			}
			each := (processorTime(t, s.service.ID()) - before) / times
			t.Logf("%v for %s%.60s", each, path, question)
			if each > 60*time.Millisecond {
				t.Errorf("%s%.60s: got %v of processor time for one answer, want at most 60 ms", path, question, each)
			}
		}
	}
}

// processorTime returns the user and system time of a process so far.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		needtest.Missing(t, "proc", err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64 // one tick is 10 ms
	for _, field := range fields[11:13] {
		n := expect.Get(strconv.ParseInt(field, 10, 64))(t)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// ask sends a GET and returns the status, or 0 if there is no answer.
func ask(ctx context.Context, address string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}
