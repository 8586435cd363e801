package steps

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

const (
	size     = 12_000    // bytes of a text, and then twice as many
	notable  = 2_000_000 // steps below which a place in the source is not looked at
	mostMore = 2.7       // times as many steps as a place may take for twice the text
)

// counted are the packages whose steps are counted.
const counted = "asset-registry/...,bytes,encoding/json,mime,mime/multipart,net/textproto,net/url,regexp,slices," +
	"strings,unicode/utf8,golang.org/x/text/unicode/norm"

// build compiles the programs with counters, and returns their directory.
func build(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	run(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+counted, "-o", bin+"/",
		"../../registry/cmd/registry", "../../registry/cmd/registryctl")
	return bin
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// place is a place in the source, such as "file.go:1.2,3.4".
type place string

var placeLine = regexp.MustCompile(`^(\S+) \d+ (\d+)$`)

// steps returns how often each place ran in the processes that wrote to the directory.
func steps(t *testing.T, dir string) map[place]int {
	t.Helper()
	text := filepath.Join(t.TempDir(), "steps")
	run(t, "go", "tool", "covdata", "textfmt", "-i", dir, "-o", text)
	f, err := os.Open(text)
	expect.OK(t, err)
	defer f.Close()
	all := map[place]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if found := placeLine.FindStringSubmatch(lines.Text()); found != nil {
			n, err := strconv.Atoi(found[2])
			expect.OK(t, err)
			all[place(found[1])] += n
		}
	}
	return all
}

// growing returns the places that took more than the given number of steps for twice the text, and that many times as
// many as for the text.
func growing(once, twice map[place]int, steps int, times float64) (found []string) {
	for _, at := range slices.Sorted(maps.Keys(twice)) {
		if n := twice[at]; n > steps && float64(n) > times*float64(once[at]) {
			found = append(found, fmt.Sprintf("%s: %d and %d", at, once[at], n))
		}
	}
	return found
}

func TestSteepPlacesAreFound(t *testing.T) {
	const n = 1000
	once := map[place]int{"linear": n * 400, "square": n * n, "log": n * 10 * 40, "small": 1}
	twice := map[place]int{"linear": 2 * n * 400, "square": 4 * n * n, "log": 2 * n * 11 * 40, "small": 4}
	if got := growing(once, twice, notable, mostMore); len(got) != 1 || got[0] != "square: 1000000 and 4000000" {
		t.Errorf("got %q, want the square", got)
	}
}

// TestTheWorkGrowsWithTheText sends each hostile text to each place of a request, with n and with 2n bytes. No place in
// the source may take more than mostMore times as many steps for twice the text. With -v, the test lists the loops over
// the texts of clients and of upstreams: all places whose work grows with a text.
func TestTheWorkGrowsWithTheText(t *testing.T) {
	bin := build(t)
	for _, c := range []struct {
		name string
		send func(t *testing.T, bin string, n int)
	}{{"a registry", sendAll}, {"an upstream", syncAll}} {
		t.Run(c.name, func(t *testing.T) {
			var counts []map[place]int
			for _, n := range []int{size, 2 * size} {
				dir := t.TempDir()
				t.Setenv("GOCOVERDIR", dir)
				c.send(t, bin, n)
				counts = append(counts, steps(t, dir))
			}
			if len(counts[1]) == 0 {
				t.Fatal("got no counts")
			}
			for _, at := range growing(counts[0], counts[1], size, 1.5) {
				t.Logf("work that grows with a text: %s", at)
			}
			for _, at := range growing(counts[0], counts[1], notable, mostMore) {
				t.Errorf("%s steps for %d and %d bytes, want at most %v times as many", at, size, 2*size, mostMore)
			}
		})
	}
}

// registry is the registry that gets the texts.
type registry struct {
	t               *testing.T
	addr, admin     string
	n               int
	id, token, file string
	answers         map[string]int // by status
}

// sendAll starts a registry and sends it all requests with texts of n bytes.
func sendAll(t *testing.T, bin string, n int) {
	r := &registry{t: t, addr: freeAddr(t), admin: freeAddr(t), n: n, answers: map[string]int{}}
	output := &processes.Output{}
	p, err := processes.Standalone(t.Context(), bin, r.addr, filepath.Join(t.TempDir(), "data"), output, "--search",
		"--admin-addr", r.admin, "--timeout=5m", "--read-timeout=5m", "--list-timeout=5m")
	if err != nil {
		t.Fatal(err, output)
	}
	r.prepare()
	for _, c := range texts {
		text := strings.Repeat(c, n/len(c))
		r.queries(text)
		r.headers(text)
		r.bodies(text)
		r.forms(text)
	}
	r.shapes()
	r.large()
	if err := p.Stop(); err != nil {
		t.Fatal(err, output)
	}
	if got := r.answers; got["200"]+got["201"] < 100 || got["400"] < 100 || got["500"] > 0 || got[""] > 0 {
		t.Errorf("got the answers %v, want some of each kind, none missing and no 500", got)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	return addr
}

const (
	key     = "Authorization: Basic YnJva2VyOg==" // broker
	isJSON  = "Content-Type: application/json"
	isForm  = "Content-Type: multipart/form-data; boundary=b"
	isQuery = "Content-Type: application/x-www-form-urlencoded"
)

// send sends a request that may be malformed, and returns the body of its answer.
func (r *registry) send(addr, method, path, body string, headers ...string) string {
	r.t.Helper()
	c, err := net.Dial("tcp", addr)
	expect.OK(r.t, err)
	defer c.Close()
	head := append([]string{method + " " + path + " HTTP/1.1", "Host: a", "Connection: close"}, headers...)
	if body != "" {
		head = append(head, "Content-Length: "+strconv.Itoa(len(body)))
	}
	go io.WriteString(c, strings.Join(head, "\r\n")+"\r\n\r\n"+body) // a registry may answer before it has read all
	answer, _ := io.ReadAll(c)                                       // the rest of a request may reset the connection
	top, text, _ := strings.Cut(string(answer), "\r\n\r\n")
	status := ""
	if fields := strings.Fields(top); len(fields) > 1 {
		status = fields[1]
	}
	r.answers[status]++
	return text
}

// prepare makes an asset and a file.
func (r *registry) prepare() {
	r.t.Helper()
	created := r.create(asset(nil))
	r.id, r.token = created.Data.ID, created.Access.Token
	var stored struct {
		URL string `json:"get_url"`
	}
	text := r.send(r.addr, "POST", "/upload", fileForm("a", "text/plain"), key, isForm)
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		r.t.Fatalf("got %s, want a file", text)
	}
	_, r.file, _ = strings.Cut(stored.URL, "/get/")
}

type created struct {
	Data   struct{ ID string }
	Access struct{ Token string }
}

func (r *registry) create(body string) (made created) {
	r.t.Helper()
	text := r.send(r.addr, "POST", "/api/2.5/assets", body, key, isJSON)
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Data.ID == "" {
		r.t.Fatalf("got %.2000s, %v, want an asset", text, err)
	}
	return made
}

func (r *registry) own() string { return "/api/2.5/assets/" + r.id + "?acc_token=" + r.token }

// syncAll lets registryctl read an upstream whose answers have hostile texts.
func syncAll(t *testing.T, bin string, n int) {
	body, read := "", func() {}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, body)
		time.AfterFunc(2*time.Second, read) // the command would try again and again
	}))
	defer upstream.Close()
	answers := shapesOf(n)
	for _, c := range texts {
		text := quoted(strings.Repeat(c, n/len(c)))
		const entry = `{"data":[{"id":"0123456789abcdef0123456789abcdef","dateModified":%s,"title":%s}],` +
			`"next_page":{"offset":%s}}`
		const date = `"2026-11-22T13:00:00.000001+00:00"`
		answers = append(answers, fmt.Sprintf(entry, date, text, text), fmt.Sprintf(entry, text, `""`, date),
			fmt.Sprintf(entry, date, text, date))
	}
	ended := 0
	for i, answer := range answers {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		body, read = answer, cancel
		sync := exec.CommandContext(ctx, filepath.Join(bin, "registryctl"), "sync", "--once", "--url", upstream.URL,
			filepath.Join(t.TempDir(), strconv.Itoa(i)))
		sync.Cancel = func() error { return sync.Process.Signal(os.Interrupt) }
		if sync.Run() != nil && ctx.Err() == nil {
			ended++
		}
		cancel()
	}
	if ended == 0 {
		t.Error("got no command that refused its upstream, want some")
	}
}
