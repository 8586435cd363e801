package e2e

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"asset-registry/deploy/test/rig/mirrors"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/randtest"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// startMirror starts a mirror at an address and kills it when the test ends.
func startMirror(t *testing.T, addr, of, dir string, output *processes.Output, args ...string) *processes.Process {
	t.Helper()
	build(t)
	p := expect.Get(mirrors.Start(t.Context(), bin, addr, of, dir, output, args...))(t)
	killAtEnd(t, p, output)
	return p
}

// chain is a registry, a mirror of it, and a mirror of that mirror.
type chain struct {
	verifying
	dirs, addrs []string // data directories and addresses of the three processes
	args        [][]string
	processes   []*processes.Process
}

// newChain starts a chain. All three processes get args.
func newChain(t *testing.T, args ...string) *chain {
	t.Helper()
	c := &chain{processes: make([]*processes.Process, 3)}
	for _, name := range []string{"data", "first", "second"} {
		c.addrs, c.dirs = append(c.addrs, freeAddr(t)), append(c.dirs, filepath.Join(t.TempDir(), name))
		c.args = append(c.args, args)
	}
	c.verifying = verifying{api: api{"http://" + c.addrs[0], "2.5"}, data: c.dirs[0]}
	for n := range c.processes {
		c.start(t, n)
	}
	c.readKeys(t, 1)
	return c
}

// patient are arguments that make timeouts long, so that answers may be late. On a busy machine, a read through
// three processes may take longer than 5 s.
var patient = []string{"--timeout", "1m", "--read-timeout", "1m", "--list-timeout", "1m"}

// start starts one of the three processes.
func (c *chain) start(t *testing.T, n int) {
	t.Helper()
	args := slices.Concat(patient, c.args[n])
	if n == 0 {
		c.processes[0] = standalone(t, c.addrs[0], c.dirs[0], &processes.Output{}, args...)
		return
	}
	args = append([]string{"--origin", "http://" + c.addrs[0]}, args...)
	c.processes[n] = startMirror(t, c.addrs[n], "http://"+c.addrs[n-1], c.dirs[n], &processes.Output{}, args...)
}

func (c *chain) kill(t *testing.T, n int) {
	t.Helper()
	expect.OK(t, c.processes[n].Kill())
}

// The method `at` returns the API of one of the three processes.
func (c *chain) at(n int) api { return api{"http://" + c.addrs[n], "2.5"} }

// await waits until both mirrors have all changes of the registry.
func (c *chain) await(t *testing.T) {
	t.Helper()
	for n := range 2 {
		expect.OK(t, mirrors.NewFront(c.base, c.at(n+1).base).AwaitMirror(t.Context()))
	}
}

// awaitLog waits until both mirrors have the registry's newest checkpoint.
func (c *chain) awaitLog(t *testing.T) {
	t.Helper()
	soon(t, "the mirrors have the checkpoint", time.Minute, func() bool {
		want := c.do(t, call{method: "GET", path: "/log/checkpoint"}).text
		is := func(n int) bool { return c.at(n).do(t, call{method: "GET", path: "/log/checkpoint"}).text == want }
		return is(1) && is(2)
	})
}

// awaitReady waits until one of the three processes is ready.
func (c *chain) awaitReady(t *testing.T, n int) {
	t.Helper()
	soon(t, "/readyz answers 200", time.Minute, func() bool {
		return c.at(n).do(t, call{method: "GET", path: "/readyz"}).status == 200
	})
}

// TestReadingFromAMirrorOfAMirror runs all scenarios. They write to a registry, and read from the mirror of its
// mirror.
func TestReadingFromAMirrorOfAMirror(t *testing.T) {
	t.Parallel()
	// A mirror counts all streams from one address together, so the limit leaves room for a stream of another
	// scenario.
	c := newChain(t, "--snapshot-interval", "1s", "--client-streams", "33")
	front := httptest.NewServer(mirrors.NewFront(c.base, c.at(2).base))
	t.Cleanup(front.Close)
	Run(t, front.URL)
}

// TestEveryReadingOfAMirrorIsTheOrigins compares the answers of a registry and its mirrors to each GET route of the
// API, in each version, byte by byte.
// Promises: mirror-equal, mirror-421
func TestEveryReadingOfAMirrorIsTheOrigins(t *testing.T) {
	t.Parallel()
	c := newChain(t, "--base-url", "https://registry.example", "--snapshot-interval", "1s")
	places := c.furnish(t)
	c.await(t)
	c.awaitLog(t)
	compared := map[string]bool{}
	for _, v := range routes.Versions() {
		for _, r := range routes.All() {
			for _, place := range places {
				path := v.Prefix() + place.Replace(r.Pattern)
				// A mirror does not copy the index; it has its own search service, or none.
				if compared[r.Method+path] || r.AtSearch {
					continue
				}
				compared[r.Method+path] = true
				if r.Class == routes.Write || r.Key {
					c.refusesAtMirrors(t, r.Method, path)
					continue
				}
				for _, query := range queriesOf(r) {
					c.compare(t, r.Method, path+query)
				}
			}
		}
	}
	size := c.leavesOf(t)
	for _, tile := range append(translog.EdgeTiles(size), translog.BundleOf(0, size)) {
		c.compare(t, "GET", "/log/"+tile.Path())
		_, name, _ := strings.Cut(c.origin(t), "/log/")
		c.compare(t, "GET", "/log/"+name+"/"+tile.Path())
	}
	t.Logf("%d paths compared", len(compared))
}

// furnish fills the registry with assets in several states. It returns replacers, which put the ids of these assets
// into the paths of routes.
func (c *chain) furnish(t *testing.T) (places []*strings.Replacer) {
	t.Helper()
	full := c.publish(t, validAsset().set("title", "Назва <&> \" \u2028"))
	for _, kind := range []string{"items", "decisions", "documents"} {
		part := map[string]any{"items": validItem(), "documents": validDocument(),
			"decisions": fields{"decisionDate": "2026-11-21", "decisionID": "1"}}[kind]
		got := c.as(t, "broker", full, "POST", full.of(kind), part).must(t, 201)
		if kind == "documents" {
			c.as(t, "broker", full, "PUT", full.of(kind)+"/"+text(got.data()["id"]), validDocument()).must(t, 200)
		}
		places = append(places, placeOf(full.id, text(got.data()["id"])))
	}
	c.move(t, "concierge", full, "verification").must(t, 200)
	process := c.as(t, "concierge", full, "POST", full.of("related_processes"), validProcess()).must(t, 201)
	test, draft := c.publish(t, validAsset().set("mode", "test")), c.create(t, validAsset())
	withdrawn := c.publish(t, validAsset())
	c.withdraw(t, withdrawn)
	for range 130 { // two leaves for each asset, together more than a tile of the log
		c.patch(t, c.publish(t, validAsset()), fields{"title": "again"}).must(t, 200)
	}
	places = append(places, placeOf(full.id, text(process.data()["id"])), placeOf(test.id, "x"), placeOf(draft.id, "x"),
		placeOf(withdrawn.id, "x"), placeOf(strings.Repeat("0", 32), strings.Repeat("0", 32)), placeOf("x", "x"))
	c.verifying.await(t, c.patch(t, c.publish(t, validAsset()), fields{"title": "last"}).must(t, 200))
	return places
}

func placeOf(id, part string) *strings.Replacer {
	return strings.NewReplacer(":id", id, ":part", part, ":transfer", part, ":file", part+".ndjson.zst", ":number", "1")
}

// queriesOf returns the queries to send to a route.
func queriesOf(r routes.Route) []string {
	switch {
	case r.Method == http.MethodHead:
		return []string{"", "?opt_pretty=1"}
	case r.Class != routes.List:
		return []string{"", "?opt_pretty=1", "?opt_jsonp=f", "?all=1", "?download=x", "?offset=%zz"}
	}
	var all []string
	for _, mode := range []string{"", "test", "_all_"} {
		for _, wanted := range []string{"", "*", "status,title,rectificationPeriod"} {
			for _, rest := range []string{"&limit=3&opt_pretty=1", "&descending=1&limit=2", "&offset=2030-01-01",
				"&offset=2020-01-01&limit=1000", "&offset=x", "&limit=0", "&descending=1&offset=2030-01-01"} {
				all = append(all, "?mode="+mode+"&opt_fields="+url.QueryEscape(wanted)+rest)
			}
		}
	}
	return all
}

// differing are headers that may differ between the answers of two servers.
var differing = []string{"Age", "Date", "X-Request-Id", "Ratelimit", "Ratelimit-Policy"}

// compare compares the answers of the three processes to one read. If the registry's answer has an ETag, the
// mirrors must answer a read with this ETag by 304.
func (c *chain) compare(t *testing.T, method, path string) {
	t.Helper()
	want, tag := c.reading(t, 0, method, path, "")
	if strings.HasSuffix(path, "/snapshot") || strings.Contains(path, "/snapshot?") {
		return // each process makes its own snapshots, which testSnapshot reads
	}
	elsewhere := strings.Contains(path, "?opt_jsonp") || strings.Contains(path, "?download")
	for n := 1; n <= 2; n++ {
		got, _ := c.reading(t, n, method, path, "")
		if elsewhere && strings.Contains(got, "relays neither scripts nor downloads") {
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s at mirror %d (-origin +mirror):\n%.2000s", method, path, n, diff)
		}
		if tag == "" {
			continue
		}
		if again, _ := c.reading(t, n, method, path, tag); !strings.HasPrefix(again, "304") {
			t.Errorf("%s %s at mirror %d with the tag %s: got %.100s, want 304", method, path, n, tag, again)
		}
	}
}

// reading returns the status, the headers and the body of an answer as one text, and its ETag.
func (c *chain) reading(t *testing.T, n int, method, path, tag string) (answer, newTag string) {
	t.Helper()
	req := expect.Get(http.NewRequest(method, c.at(n).base+path, nil))(t)
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	resp, err := client.Transport.RoundTrip(req) // unlike the client, the transport follows no redirect
	expect.OK(t, err)
	defer resp.Body.Close()
	body := expect.Get(io.ReadAll(resp.Body))(t)
	if age := resp.Header.Get("Age"); (age == "") != (n == 0) {
		t.Errorf("%s %s at %d: got the Age %q, want one at mirrors only", method, path, n, age)
	}
	var header strings.Builder
	for _, name := range differing {
		resp.Header.Del(name)
	}
	expect.OK(t, resp.Header.Write(&header))
	return fmt.Sprintf("%d\n%s\n%s", resp.StatusCode, &header, body), resp.Header.Get("ETag")
}

// refusesAtMirrors sends a request that needs a key to both mirrors, which must refuse it.
func (c *chain) refusesAtMirrors(t *testing.T, method, path string) {
	t.Helper()
	for n := 1; n <= 2; n++ {
		got := c.at(n).do(t, call{method: method, path: path, key: "broker", body: data(fields{})})
		link := `<` + c.base + `>; rel="original"`
		if got.status != http.StatusMisdirectedRequest || got.header.Get("Link") != link ||
			method != http.MethodHead && !strings.Contains(got.text, c.base) {
			t.Errorf("%s %s at mirror %d: got %d, Link %q, %s, want 421 and %q", method, path, n, got.status,
				got.header.Get("Link"), got.text, link)
		}
	}
}

func (c *chain) checkpoint(t *testing.T) translog.Checkpoint {
	t.Helper()
	return expect.Get(translog.Unverified([]byte(c.do(t, call{method: "GET", path: "/log/checkpoint"}).text)))(t)
}

func (c *chain) leavesOf(t *testing.T) int64 { t.Helper(); return c.checkpoint(t).Size }
func (c *chain) origin(t *testing.T) string  { t.Helper(); return c.checkpoint(t).Origin }

// TestMirrorsAreEqualAfterKills kills the three processes of a chain at random moments while clients write. At the
// end, the three must have the same data, and the log must verify.
// Promises: mirror-equal, mirror-kills
func TestMirrorsAreEqualAfterKills(t *testing.T) {
	t.Parallel()
	const kills, writers = 15, 6
	c := newChain(t, "--snapshot-interval", "1s")
	stop := writeOn(t, c.api, writers)
	for kill := range kills {
		// Wait, so that the kill comes at a random moment.
		time.Sleep(time.Duration(50+randtest.IntN(1500)) * time.Millisecond)
		n := kill % 3
		c.kill(t, n)
		if kill == kills/2 { // this mirror starts again without data
			if err := os.RemoveAll(c.dirs[n]); n == 0 || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		c.start(t, n)
	}
	written := stop()
	c.await(t)
	c.awaitLog(t)
	want := c.entries(t)
	for n := 1; n <= 2; n++ {
		v := verifying{api: c.at(n), data: c.dirs[0], keys: c.keys}
		if diff := cmp.Diff(want, v.entries(t)); diff != "" || len(want) == 0 {
			t.Errorf("mirror %d differs (-origin +mirror):\n%.5000s", n, diff)
		}
		v.verify(t, filepath.Join(t.TempDir(), "remembered"))
	}
	t.Logf("%d acknowledged writes of %d assets, %d kills", written, len(want), kills)
}

// TestAMirrorGoesOnWithoutItsOrigin stops the registry. The mirrors must go on, report how old their copy is, and
// also start again without the registry.
// Promises: mirror-kills
func TestAMirrorGoesOnWithoutItsOrigin(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	asset := c.publish(t, validAsset())
	c.await(t)
	c.kill(t, 2)
	c.args[2] = []string{"--max-behind", "20s"} // at each mirror, an answer may be 5 s old
	c.start(t, 2)
	c.kill(t, 0)
	killed := time.Now()
	last := c.at(2)
	equal(t, "title", last.read(t, asset.id).must(t, 200).data()["title"], asset.data()["title"])
	refused := last.do(t, call{method: "GET", path: asset.of("proof")}).fails(t, 503, "url/mirror")
	if refused.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After, want one")
	}
	last.read(t, strings.Repeat("0", 32)).fails(t, 503, "url/mirror")
	c.kill(t, 1)
	c.start(t, 1)
	last.read(t, asset.id).must(t, 200)
	c.at(1).page(t, "")
	soon(t, "/readyz fails", time.Minute, func() bool {
		got := last.do(t, call{method: "GET", path: "/readyz"})
		return got.status == 503 && strings.Contains(got.text, "behind the registry") && len(got.header.Get("Age")) > 1
	})
	last.page(t, "")
	c.kill(t, 1)
	c.start(t, 1)
	for n := 1; n <= 2; n++ {
		without := int(time.Since(killed).Seconds())
		age, err := strconv.Atoi(c.at(n).do(t, call{method: "GET", path: "/readyz"}).header.Get("Age"))
		if err != nil || age < without {
			t.Errorf("mirror %d, %d s after the end of the registry: got the Age %d, %v, want no less", n, without, age, err)
		}
	}
	c.start(t, 0)
	c.awaitReady(t, 2)
	last.do(t, call{method: "GET", path: asset.of("proof")}).must(t, 200)
}

// TestAMirrorServesOnlyWhatTheLogHas starts a mirror whose copy was changed. The mirror must copy the registry again.
func TestAMirrorServesOnlyWhatTheLogHas(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	forged := c.publish(t, validAsset())
	newest := c.publish(t, validAsset())
	c.verifying.await(t, newest.answer)
	c.await(t)
	c.awaitLog(t)
	c.kill(t, 1)
	c.args[1] = []string{"--public-key", c.keys[0]}
	c.start(t, 1)
	c.at(1).read(t, newest.id).must(t, 200)

	c.kill(t, 1)
	movePosition(t, c.dirs[1], forged.id)
	expect.OK(t, os.Remove(filepath.Join(c.dirs[1], "log.db")))
	output := &processes.Output{}
	c.processes[1] = startMirror(t, c.addrs[1], c.base, c.dirs[1], output, c.args[1]...)
	const void = "the copy may be void"
	await(t, output, void)
	c.awaitReady(t, 1) // before that, the mirror may have served the old copy
	equal(t, "the asset again", c.at(1).read(t, forged.id).must(t, 200).text, c.read(t, forged.id).text)
	equal(t, "new beginnings", strings.Count(output.String(), void), 1)
}

// TestMirrorsFollowTheZoneOfTheRegistry restarts the registry with other time zones. The mirrors must then print
// times in the registry's zone.
func TestMirrorsFollowTheZoneOfTheRegistry(t *testing.T) {
	t.Parallel()
	c := newChain(t, "--base-url", "https://registry.example", "--snapshot-interval", "0")
	base := c.args[0]
	asset := c.publish(t, validAsset())
	c.publish(t, validAsset().set("mode", "test"))
	c.await(t)
	for _, zone := range []string{"+02:00", "-03:30", "+00:00"} {
		c.kill(t, 0)
		c.args[0] = append(slices.Clone(base), "--zone="+zone)
		c.start(t, 0)
		want := c.page(t, "").text
		if !strings.Contains(want, zone) {
			t.Fatalf("got the page %s, want times in the zone %s", want, zone)
		}
		for n := 1; n <= 2; n++ {
			soon(t, "the mirror has the zone "+zone, time.Minute, func() bool {
				got := c.at(n).do(t, call{method: "GET", path: "/assets"})
				return got.status == 200 && got.text == want
			})
		}
		for _, path := range []string{"/api/2.5/assets?mode=_all_&opt_fields=*", "/api/2.5/assets?descending=1&limit=1",
			"/api/2.4/assets", "/api/2.4/assets/" + asset.id, "/api/2.5/assets/" + asset.id} {
			c.compare(t, http.MethodGet, path)
		}
		c.patch(t, asset, fields{"title": "in the zone " + zone}).must(t, 200)
		soon(t, "the mirrors have the change", time.Minute, func() bool {
			want := c.page(t, "").text
			return c.at(1).page(t, "").text == want && c.at(2).page(t, "").text == want
		})
		c.compare(t, http.MethodGet, "/api/2.5/assets/"+asset.id)
	}
}

// movePosition changes the position of an asset in a copy to a position that the log does not have.
func movePosition(t *testing.T, dir, id string) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "copy.db"), 0o600, nil)
	expect.OK(t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		assets, feed := tx.Bucket([]byte("assets")), tx.Bucket([]byte("feed"))
		key, err := hex.DecodeString(id)
		if err != nil {
			return err
		}
		value := bytes.Clone(assets.Get(key))
		before := bytes.Clone(value[:8])
		value[7]--
		return errors.Join(feed.Delete(before), feed.Put(value[:8], key), assets.Put(key, value))
	})
	expect.OK(t, errors.Join(err, db.Close()))
}
