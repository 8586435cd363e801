package clients

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// A hostile server answers in ways in which the registry never answers, but proxies and faulty servers do. The
// clients of all languages are tested with the same cases.

// hostileCase is a call to a hostile server: how the server answers, and how the call may end.
type hostileCase struct {
	Name string `json:"name"`
	Call string `json:"call"` // get, change, pages, follow or restored
	Hang bool   `json:"hang"` // true: the call ends by its own timeout

	answers  []reaction // answers to the first request, the second one and so on; the last answer is repeated
	want     []string   // permitted outcomes
	requests int        // how many requests the client must send; 0 means any number
}

// reaction answers one request. It returns whether the connection stays open.
type reaction func(conn net.Conn) bool

// says returns a reaction that sends a text and closes the connection.
func says(text string) reaction {
	return func(conn net.Conn) bool {
		io.WriteString(conn, text)
		return false
	}
}

// keeps returns a reaction that sends a text and keeps the connection open.
func keeps(text string) reaction {
	return func(conn net.Conn) bool {
		_, err := io.WriteString(conn, text)
		return err == nil
	}
}

// hangs returns a reaction that sends a text, and then nothing more until the client closes the connection.
func hangs(text string) reaction {
	return func(conn net.Conn) bool {
		io.WriteString(conn, text)
		_, _ = io.Copy(io.Discard, conn)
		return false
	}
}

// repeats returns a reaction that sends a text, and then sends the parameter `piece` again and again until the client
// closes the connection.
func repeats(text, piece string, pause time.Duration) reaction {
	return func(conn net.Conn) bool {
		io.WriteString(conn, text)
		for {
			if _, err := io.WriteString(conn, piece); err != nil {
				return false
			}
			time.Sleep(pause)
		}
	}
}

// answer returns an HTTP answer with the right Content-Length, as JSON unless it is a page.
func answer(status, headers, body string) string {
	if body != htmlPage {
		headers += jsonType
	}
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), headers, body)
}

// zipped compresses a text.
func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text) // writing to a buffer cannot fail
	_ = w.Close()
	return b.String()
}

const (
	htmlPage  = "<html><h1>Bad Gateway</h1></html>"
	foundBody = `{"data":{"id":"a","title":"found"}}`
	ok        = "200 OK"
	gzipped   = "Content-Encoding: gzip\r\n"
	jsonType  = "Content-Type: application/json\r\n"
	headless  = "HTTP/1.1 200 OK\r\n" + jsonType
)

var (
	found    = keeps(answer(ok, "", foundBody))
	noAnswer = []string{"no answer"}
	bad      = []string{"bad answer"}
	isFound  = []string{"found"}
)

// hostileCases returns cases with odd bodies, lengths and statuses.
func hostileCases() []hostileCase {
	half := zipped(foundBody)
	half = half[:len(half)/2]
	get := func(name string, want []string, requests int, answers ...reaction) hostileCase {
		return hostileCase{Name: name, Call: "get", answers: answers, want: want, requests: requests}
	}
	hang := func(name string, a reaction) hostileCase {
		return hostileCase{Name: name, Call: "get", Hang: true, answers: []reaction{a}, want: noAnswer}
	}
	cases := []hostileCase{
		get("html-502", []string{"refused 502"}, 2, keeps(answer("502 Bad Gateway", "", htmlPage))),
		get("html-504", isFound, 2, keeps(answer("504 Gateway Timeout", "", htmlPage)), found),
		get("html-500", []string{"refused 500"}, 1, keeps(answer("500 Oops", "", htmlPage))),
		get("html-403", []string{"refused 403"}, 1, keeps(answer("403 Forbidden", "", htmlPage))),
		get("html-200", bad, 1, keeps(answer(ok, "", htmlPage))),
		get("empty-200", bad, 1, keeps(answer(ok, "", ""))),
		get("status-204", bad, 1, keeps("HTTP/1.1 204 No Content\r\n\r\n")),
		get("status-304", []string{"refused 304"}, 1, keeps("HTTP/1.1 304 Not Modified\r\n\r\n")),
		get("no-data", bad, 1, keeps(answer(ok, "", `{"errors":[]}`))),
		get("null-data", bad, 1, keeps(answer(ok, "", `{"data":null}`))),
		get("list-data", bad, 1, keeps(answer(ok, "", `{"data":[]}`))),
		get("deep", bad, 1, keeps(answer(ok, "", `{"data":`+strings.Repeat("[", 100_000)))),
		get("cut-json", bad, 1, says(headless+"Connection: close\r\n\r\n"+foundBody[:20])),
		get("cut-body", isFound, 2, says(headless+"Content-Length: 1000\r\n\r\n"+foundBody), found),
		get("cut-chunk", isFound, 2, says(headless+"Transfer-Encoding: chunked\r\n\r\nff\r\n"+foundBody), found),
		get("no-last-chunk", isFound, 2,
			says(headless+fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(foundBody), foundBody)), found),
		get("small-length", bad, 1, says(headless+"Content-Length: 10\r\n\r\n"+foundBody)),
		get("word-length", noAnswer, 2, says(headless+"Content-Length: abc\r\n\r\n"+foundBody)),
		get("negative-length", noAnswer, 2, says(headless+"Content-Length: -5\r\n\r\n"+foundBody)),
		get("two-lengths", noAnswer, 2, says(headless+"Content-Length: 35\r\nContent-Length: 36\r\n\r\n"+foundBody)),
		get("quiet-end", isFound, 0, says(answer(ok, "", foundBody))),
		get("no-http", noAnswer, 2, says("SSH-2.0-OpenSSH_9.9\r\n")),
		get("nothing", noAnswer, 0, says("")),
		get("gzip", isFound, 1, keeps(answer(ok, gzipped, zipped(foundBody)))),
		get("gzip-members", isFound, 1, keeps(answer(ok, gzipped, zipped(foundBody[:9])+zipped(foundBody[9:])))),
		get("gzip-length", noAnswer, 2, says(headless+gzipped+"Content-Length: 1000\r\n\r\n"+zipped(foundBody))),
		get("gzip-cut", []string{"no answer", "bad answer"}, 0, keeps(answer(ok, gzipped, half))),
		get("gzip-plain", noAnswer, 2, keeps(answer(ok, gzipped, foundBody))),
		get("gzip-bomb", bad, 1, keeps(answer(ok, gzipped, zipped(strings.Repeat(" ", 64<<20))))),
		get("endless-body", bad, 1, repeats(headless+"\r\n", strings.Repeat(" ", 64<<10), 0)),
		get("endless-chunks", bad, 1, repeats(headless+"Transfer-Encoding: chunked\r\n\r\n",
			"10000\r\n"+strings.Repeat(" ", 64<<10)+"\r\n", 0)),
		get("endless-headers", noAnswer, 2, repeats(headless, "X: "+strings.Repeat("x", 1000)+"\r\n", 0)),
		hang("long-length", hangs(headless+"Content-Length: 1000\r\n\r\n"+foundBody)),
		hang("silence", hangs("")),
		hang("drip", repeats(headless+"\r\n", " ", 20*time.Millisecond)),
		hang("endless-100", repeats("", "HTTP/1.1 100 Continue\r\n\r\n", 20*time.Millisecond)),
	}
	return slices.Concat(cases, retryCases(), listingCases())
}

// retryCases returns cases with odd values of Retry-After.
func retryCases() (cases []hostileCase) {
	busy := func(after string) reaction {
		return keeps(answer("503 Service Unavailable", "Retry-After: "+after+"\r\n", htmlPage))
	}
	for name, after := range map[string]string{"30-days": "2592000", "many-digits": strings.Repeat("9", 30),
		"year-9999": "Fri, 31 Dec 9999 23:59:59 GMT"} {
		cases = append(cases,
			hostileCase{Name: "after-" + name, Call: "get", answers: []reaction{busy(after)}, want: []string{"refused 503"},
				requests: 1},
			hostileCase{Name: "follow-" + name, Call: "follow", answers: []reaction{busy(after)}, want: []string{"waits"},
				requests: 1})
	}
	for name, after := range map[string]string{"zero": "0", "negative": "-5", "garbage": "soon", "empty": "",
		"past": "Thu, 01 Jan 1970 00:00:00 GMT"} {
		cases = append(cases, hostileCase{Name: "after-" + name, Call: "get", answers: []reaction{busy(after), found},
			want: isFound, requests: 2})
	}
	return cases
}

// listingCases returns cases with pages, redirects, and a registry that was restored from a backup.
func listingCases() (cases []hostileCase) {
	for name, body := range map[string]string{
		"page-no-next":   `{"data":[{"id":"a","dateModified":"1"}]}`,
		"page-no-offset": `{"data":[{"id":"a","dateModified":"1"}],"next_page":{"offset":""}}`,
		"page-no-list":   `{"data":{"id":"a"},"next_page":{"offset":"1"}}`,
		"page-of-texts":  `{"data":["a"],"next_page":{"offset":"1"}}`,
	} {
		cases = append(cases, hostileCase{Name: name, Call: "pages", answers: []reaction{keeps(answer(ok, "", body))}, want: bad,
			requests: 1})
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, call := range []string{"get", "change"} {
			to := keeps(answer(fmt.Sprint(status, " Elsewhere"), "Location: /elsewhere/api/2.5/assets/a\r\n", htmlPage))
			cases = append(cases, hostileCase{Name: fmt.Sprintf("redirect-%d-%s", status, call), Call: call,
				answers: []reaction{to}, want: []string{fmt.Sprint("refused ", status)}, requests: 1})
		}
	}
	return append(cases, hostileCase{Name: "restored", Call: "restored", want: isFound})
}

// hostile is the hostile server. The first segment of a request's path is the name of a case.
type hostile struct {
	cases    map[string]hostileCase
	restored *restored
	listener net.Listener

	mu    sync.Mutex
	seen  map[string]int // numbers of requests; the keys are names of cases
	conns []net.Conn
}

func newHostile(t *testing.T, cases []hostileCase) *hostile {
	t.Helper()
	listener, err := net.Listen("tcp4", ":0") // listens on all addresses of 127.0.0.0/8; hostile.mjs explains why
	expect.OK(t, err)
	h := &hostile{cases: map[string]hostileCase{}, restored: newRestored(), listener: listener, seen: map[string]int{}}
	for _, c := range cases {
		h.cases[c.Name] = c
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.conns = append(h.conns, conn)
			h.mu.Unlock()
			serving.Go(func() { h.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		h.mu.Lock()
		for _, conn := range h.conns {
			conn.Close()
		}
		h.mu.Unlock()
		serving.Wait()
	})
	return h
}

// serve reads requests from a connection and answers them.
func (h *hostile) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		name := strings.Split(r.URL.Path, "/")[1]
		h.mu.Lock()
		n := h.seen[name]
		h.seen[name]++
		h.mu.Unlock()
		if name == "restored" {
			if !keeps(h.restored.answer(r))(conn) {
				return
			}
			continue
		}
		answers := h.cases[name].answers
		if len(answers) == 0 || !answers[min(n, len(answers)-1)](conn) {
			return
		}
	}
}

// changesAtOnce is how many changes a client sends at the same time to the restored registry.
const changesAtOnce = 8

// restored is a registry that is restored from a backup after it has sent its cookie. It refuses changes with the
// old cookie, but only after all changes have arrived. So the client has sent every change with the old cookie.
type restored struct {
	mu   sync.Mutex
	left int
	all  chan struct{}
}

func newRestored() *restored { return &restored{left: changesAtOnce, all: make(chan struct{})} }

func (r *restored) answer(req *http.Request) string {
	cookie, err := req.Cookie("SERVER_ID")
	switch {
	case req.Method == http.MethodGet:
		return answer(ok, "Set-Cookie: SERVER_ID=old; Path=/\r\n", foundBody)
	case err != nil || cookie.Value != "old":
		return answer(ok, "", foundBody)
	}
	r.mu.Lock()
	if r.left--; r.left == 0 {
		close(r.all)
	}
	r.mu.Unlock()
	<-r.all
	return answer("412 Precondition Failed", "Set-Cookie: SERVER_ID=new; Path=/\r\n",
		`{"status":"error","errors":[{"location":"url","name":"precondition","description":"Other data."}]}`)
}

// url returns the address of the server.
func (h *hostile) url() string {
	return fmt.Sprintf("http://127.0.0.1:%d", h.listener.Addr().(*net.TCPAddr).Port)
}

// check compares the outcome of each case with its permitted outcomes.
func (h *hostile) check(t *testing.T, outcomes map[string]string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, c := range h.cases {
		if !slices.Contains(c.want, outcomes[name]) {
			t.Errorf("%s: got %q, want one of %q", name, outcomes[name], c.want)
		}
		if c.requests > 0 && h.seen[name] != c.requests {
			t.Errorf("%s: got %d requests, want %d", name, h.seen[name], c.requests)
		}
	}
	if h.seen["elsewhere"] > 0 {
		t.Errorf("got %d requests that followed a redirect, want none", h.seen["elsewhere"])
	}
}

// asked runs a program with all cases, and returns the outcomes that it prints.
func (h *hostile) asked(t *testing.T, dir string, env []string, name string, args ...string) map[string]string {
	t.Helper()
	var cases []hostileCase
	for _, c := range h.cases {
		cases = append(cases, c)
	}
	text, err := json.Marshal(cases)
	expect.OK(t, err)
	env = append(env, "HOSTILE="+h.url(), "CASES="+string(text), "PYTHONDONTWRITEBYTECODE=1")
	var outcomes map[string]string
	printed := program(t, dir, env, name, args...)
	if err := json.Unmarshal([]byte(printed), &outcomes); err != nil {
		t.Fatalf("got %s, %v, want the outcomes as JSON", printed, err)
	}
	return outcomes
}

func TestPythonClientMeetsAHostileServer(t *testing.T) {
	needtest.Commands(t, "python3")
	h := newHostile(t, hostileCases())
	h.check(t, h.asked(t, ".", []string{absolutePython(t)}, "python3", "-W", "error", "hostile.py"))
}

func TestTypeScriptClientMeetsAHostileServer(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	dir, _ := compiled(t)
	copyAll(t, "hostile.mjs", filepath.Join(dir, "hostile.mjs"))
	h := newHostile(t, hostileCases())
	h.check(t, h.asked(t, dir, nil, "node", "hostile.mjs"))
}
