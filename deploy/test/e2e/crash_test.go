package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// TestACrashLosesNoAcknowledgedWrite kills the registry many times while clients write and follow the feed. After
// each restart, every acknowledged write must be there. No entry may appear in the feed before the offset that a
// follower has reached. The public log must continue each checkpoint that it has ever shown.
func TestACrashLosesNoAcknowledgedWrite(t *testing.T) {
	const kills, writers = 20, 16
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	ledger := &ledger{}
	followers := []*follower{newFollower(a, false, "2000-01-01T00:00:00+00:00"),
		newFollower(a, true, "2000-01-01T00:00:00+00:00")}
	auditor := &auditor{roots: map[int64]string{}}
	var shown atomic.Int64 // number of entries that followers read under load
	for i := range kills {
		want := (i + 1) * writers // minimum number of acknowledged writes, and of entries, before this kill
		registry := standalone(t, addr, dir, &processes.Output{})
		ledger.check(t, a)
		for j, f := range followers {
			f.catchUp(t)
			f.check(t, fmt.Sprintf("after kill %d follower %d", i, j))
		}
		var working sync.WaitGroup
		working.Go(func() { auditor.watch(a) })
		for _, f := range followers {
			working.Go(func() { f.chase(t, &shown) })
		}
		stop := make(chan struct{})
		for range writers {
			working.Go(func() {
				for work := true; work; {
					select {
					case <-stop:
						return
					default:
						work = ledger.write(a)
					}
				}
			})
		}
		for began := time.Now(); ledger.count() < want || shown.Load() < int64(want); time.Sleep(time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatalf("got %d writes and %d entries before kill %d, want %d of each", ledger.count(), shown.Load(),
					i, want)
			}
		}
		time.Sleep(time.Duration(randtest.IntN(500)) * time.Millisecond) // so that the crash comes at a random moment
		expect.OK(t, registry.Kill())
		close(stop)
		working.Wait()
	}
	standalone(t, addr, dir, &processes.Output{})
	ledger.check(t, a)
	ledger.checkFeed(t, followers)
	ledger.checkRecords(t, a)
	auditor.check(t, a, ledger)
	t.Logf("%d assets, %d acknowledged writes, %d entries followed under load, %d kills", len(ledger.assets),
		ledger.count(), shown.Load(), kills)
}

// TestACrashDuringTheFirstStartIsHarmless kills the registry at a random moment of
// its first start. The next start must work.
func TestACrashDuringTheFirstStartIsHarmless(t *testing.T) {
	build(t)
	for range 15 {
		after := time.Duration(randtest.IntN(50)) * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "a", "data")
			first := exec.Command(filepath.Join(bin, "registry"), "serve", "--addr", addr, "--data", dir)
			expect.OK(t, first.Start())
			time.Sleep(after) // so that the crash comes at a random moment
			expect.OK(t, first.Process.Kill())
			_ = first.Wait() // the error only says that the process was killed
			standalone(t, addr, dir, &processes.Output{})
			a := api{"http://" + addr, "2.5"}
			a.patch(t, a.publish(t, validAsset()), fields{"description": "після"}).must(t, 200)
		})
	}
}

// chase follows the feed until the registry stops answering. It adds the number of entries that it reads to the
// counter `shown`.
func (f *follower) chase(t *testing.T, shown *atomic.Int64) {
	for {
		var got struct {
			Data     []struct{ ID, DateModified string }
			NextPage struct{ Path string } `json:"next_page"`
		}
		if send(f.api, "GET", f.next, "", nil, &got) != http.StatusOK {
			return
		}
		var entries []entry
		for _, e := range got.Data {
			entries = append(entries, entry{e.ID, e.DateModified})
		}
		f.keep(t, entries)
		shown.Add(int64(len(entries)))
		f.next = got.NextPage.Path
	}
}

// ledger is what the writers know: the last acknowledged state of each asset, and the later changes that got no
// answer.
type ledger struct {
	mu           sync.Mutex
	assets       []*promise
	acknowledged int
}

// promise is the last acknowledged state of one asset.
type promise struct {
	mu          sync.Mutex // held by the one writer that changes the asset
	id, token   string
	description string
	modified    string   // dateModified
	listed      bool     // whether the asset is in the feed
	tried       []string // the descriptions of the changes after the last acknowledged one
	dates       []string // dateModified of each acknowledged change
	unanswered  int      // number of changes that got no answer
}

// write sends one change, and reports whether the registry still answers.
func (l *ledger) write(a api) bool {
	l.mu.Lock()
	count := len(l.assets)
	var p *promise
	if count > 0 && randtest.IntN(3) > 0 {
		p = l.assets[randtest.IntN(count)]
	}
	l.mu.Unlock()
	if p == nil {
		return l.create(a)
	}
	if !p.mu.TryLock() {
		return true
	}
	defer p.mu.Unlock()
	description := fmt.Sprintf("%016x", randtest.Uint64())
	change := fields{"description": description, "status": "pending"}
	var got struct{ Data struct{ DateModified string } }
	status := send(a, "PATCH", "/api/2.5/assets/"+p.id, p.token, data(change), &got)
	if status != http.StatusOK {
		p.tried = append(p.tried, description)
		p.unanswered++
		return status != 0
	}
	p.description, p.modified, p.listed, p.tried = description, got.Data.DateModified, true, nil
	p.dates = append(p.dates, p.modified)
	l.acknowledge()
	return true
}

// create creates an asset, and reports whether the registry still answers.
func (l *ledger) create(a api) bool {
	var got struct {
		Access struct{ Token string }
		Data   struct{ ID, Description, DateModified string }
	}
	status := send(a, "POST", "/api/2.5/assets", "", data(validAsset()), &got)
	if status != http.StatusCreated {
		return status != 0
	}
	l.acknowledge()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.assets = append(l.assets, &promise{id: got.Data.ID, token: got.Access.Token, description: got.Data.Description,
		modified: got.Data.DateModified, dates: []string{got.Data.DateModified}})
	return true
}

func (l *ledger) acknowledge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged++
}

// count returns the number of acknowledged writes.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged
}

// send sends a request with the key "broker", stores the decoded answer in the parameter `into`, and returns the
// status. It returns 0 if no complete answer came, which happens when the registry is killed.
func send(a api, method, path, token string, body, into any) int {
	return sendBy(a, "broker", method, path, token, body, into)
}

// sendBy does what send does, but with the given key.
func sendBy(a api, key, method, path, token string, body, into any) int {
	text, err := json.Marshal(body) // nil becomes null, which a GET ignores
	if err != nil {
		return 0
	}
	req, err := http.NewRequest(method, a.base+path, bytes.NewReader(text))
	if err != nil {
		return 0
	}
	req.SetBasicAuth(key, "")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Access-Token", token)
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(answer, into) != nil {
		return 0
	}
	return resp.StatusCode
}

// check reads every asset. The asset must have its last acknowledged state, or the state after a later change that
// got no answer. Its token must work.
func (l *ledger) check(t *testing.T, a api) {
	t.Helper()
	for i, p := range l.assets {
		got := a.read(t, p.id).must(t, 200).data()
		found := text(got["description"])
		for _, tried := range p.tried {
			if found == tried { // the change was stored, although its answer was lost in the crash
				p.description, p.modified, p.listed = found, text(got["dateModified"]), true
			}
		}
		if found != p.description || text(got["dateModified"]) != p.modified {
			t.Errorf("asset %s has %q of %v, acknowledged was %q of %s", p.id, found, got["dateModified"],
				p.description, p.modified)
		}
		p.tried = nil
		if i%20 == 0 {
			again := a.patch(t, created{id: p.id, token: p.token}, fields{}).must(t, 200)
			if text(again.data()["dateModified"]) != p.modified {
				t.Errorf("asset %s: got dateModified %v after an empty change, want %s", p.id,
					again.data()["dateModified"], p.modified)
			}
		}
	}
}

// checkFeed checks that every follower has seen the last state of each asset.
func (l *ledger) checkFeed(t *testing.T, followers []*follower) {
	t.Helper()
	for i, f := range followers {
		f.catchUp(t)
		f.check(t, fmt.Sprint("in the end follower ", i))
		for _, p := range l.assets {
			if p.listed && !f.seen[entry{p.id, p.modified}] {
				t.Errorf("follower %d: got no asset %s of %s, want it seen", i, p.id, p.modified)
			}
		}
	}
}

// checkRecords reads the record of every asset. The record must have each acknowledged change at its dateModified.
// All other changes in it must be changes that got no answer.
func (l *ledger) checkRecords(t *testing.T, a api) {
	t.Helper()
	for _, p := range l.assets {
		record := a.record(t, p.id, "broker", p.token)
		dates := map[string]bool{}
		for _, change := range record {
			dates[text(at(change, "date"))] = true
		}
		for _, date := range p.dates {
			if !dates[date] {
				t.Errorf("record of asset %s: got no change of %s, want the acknowledged one", p.id, date)
			}
		}
		if most := len(p.dates) + p.unanswered; len(dates) != len(record) || len(record) > most {
			t.Errorf("record of asset %s: got %d changes at %d dates, want at most %d, each at its own", p.id,
				len(record), len(dates), most)
		}
		expect.Equal(t, text(at(record[0], "date")), p.modified, "record of asset %s, as its newest change", p.id)
	}
}
