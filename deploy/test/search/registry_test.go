package search

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"asset-registry.example/client"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

var bin = flag.String("bin", "", "folder of the programs")

// stage is a registry, and a search service in a separate process. The tests kill this process.
type stage struct {
	registry, search *client.Client // search sends requests to the search service itself
	of, addr, dir    string
	service          *processes.Process
	output           processes.Output
}

// newStage starts the registry and the search service.
func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageIn(t, filepath.Join(t.TempDir(), "search"))
}

// newStageIn does what newStage does, with the index in the given directory.
func newStageIn(t *testing.T, dir string) *stage {
	t.Helper()
	if *bin == "" {
		t.Fatal("name the folder of the programs with -bin; make test-search does so")
	}
	s := &stage{of: free(t), addr: free(t), dir: dir}
	registry := expect.Get(processes.Standalone(t.Context(), *bin, s.of, filepath.Join(t.TempDir(), "data"), &s.output,
		"--no-search", "--snapshot-interval", "2s"))(t)
	t.Cleanup(func() { stop(t, registry) })
	s.registry, s.search = newClient(t, s.of, "broker"), newClient(t, s.addr, "")
	s.start(t)
	t.Cleanup(func() { stop(t, s.service) })
	return s
}

func free(t *testing.T) string {
	t.Helper()
	addr := expect.Get(porttest.FreeAddr())(t)
	return addr
}

func stop(t *testing.T, p *processes.Process) {
	t.Helper()
	expect.Nil(t, p.Stop(), "stop")
}

func newClient(t *testing.T, addr, key string) *client.Client {
	t.Helper()
	c := expect.Get(client.New(client.Config{URL: "http://" + addr, Key: client.Secret(key)}))(t)
	return c
}

// start starts the search service, and returns when it answers.
func (s *stage) start(t *testing.T) {
	t.Helper()
	p, err := processes.Search(t.Context(), *bin, s.addr, "http://"+s.of, s.dir, &s.output)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.output.String())
	}
	s.service = p
}

// listed returns the dateModified of each asset in the feed that a search should find.
func (s *stage) listed(t *testing.T) map[string]client.Timestamp {
	t.Helper()
	all := map[string]client.Timestamp{}
	feed := client.Feed{Limit: 1000, Fields: []string{"status"}}
	for page, err := range s.registry.Pages(t.Context(), feed) {
		expect.OK(t, err)
		for _, a := range page.Assets {
			all[a.ID] = a.DateModified
			if a.Status == client.Deleted {
				delete(all, a.ID)
			}
		}
	}
	return all
}

// found returns the dateModified of each asset in the index.
func (s *stage) found(ctx context.Context) (map[string]client.Timestamp, error) {
	all := map[string]client.Timestamp{}
	query := url.Values{"sort": {"modified"}, "limit": {"100"}}
	for {
		page, err := s.search.Search(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, a := range page.Assets {
			all[a.ID] = a.DateModified
		}
		if page.Next == "" {
			return all, nil
		}
		query.Set("search_after", page.Next)
	}
}

// asset returns a valid asset that can be published.
func asset(title string) client.Asset {
	place := client.Address{CountryName: "Україна", Region: "Київська область", Locality: "м. Ірпінь"}
	return client.Asset{
		AssetType: "bounce", Title: title, Description: "Опис " + title,
		Items: []client.Item{{
			Description: "Приміщення", Classification: client.Classification{Scheme: "CAV-PS", ID: "04121000-2", Description: "x"},
			Unit: client.Unit{Code: "MTK"}, Quantity: "240.5", Address: place,
			RegistrationDetails: client.RegistrationDetails{Status: "unknown"},
		}},
		Decisions: []client.Decision{{DecisionDate: "2026-11-20T12:00:00+02:00", DecisionID: "1"}},
		AssetCustodian: client.Organisation{
			Name: "Фонд", Identifier: client.Identifier{Scheme: "UA-EDR", ID: client.Text("00032945")}, Address: place,
			ContactPoint: client.Contact{Name: "x", Telephone: "+380440000000"},
		},
	}
}

// write creates, publishes and changes assets until ctx is done.
func (s *stage) write(ctx context.Context, t *testing.T) {
	type owned struct {
		id    string
		token client.Secret
	}
	var mine []owned
	for n := 0; ctx.Err() == nil; n++ {
		err := func() error {
			a := asset(fmt.Sprintf("Будинок %d", n))
			if n%7 == 3 {
				a.Mode = client.TestMode
			}
			created, err := s.registry.Create(ctx, a)
			if err != nil || n%5 == 4 { // some assets stay drafts
				return err
			}
			one := owned{created.Asset.ID, created.Access.Token}
			mine = append(mine, one)
			if _, err := s.registry.Publish(ctx, one.id, client.Write{Token: one.token}); err != nil {
				return err
			}
			if n%3 != 0 {
				return nil
			}
			old := mine[(n*7)%len(mine)]
			_, err = s.registry.Patch(ctx, old.id, client.Fields{"title": fmt.Sprint("Змінено ", n)}, client.Write{Token: old.token})
			return err
		}()
		if err != nil && ctx.Err() == nil {
			t.Errorf("write: %v", err)
			return
		}
	}
}

// awaitEqual waits until the index and the feed have the same assets, and returns their number.
func (s *stage) awaitEqual(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var last error
	for {
		// Read the feed each time: the registry may still carry out the last write after its client has gone.
		want := s.listed(t)
		got, err := s.found(ctx)
		if err == nil {
			err = difference(got, want)
		}
		if err == nil {
			return len(want)
		}
		if ctx.Err() != nil {
			t.Fatalf("the index differs from the %d assets of the feed: %v", len(want), last)
		}
		last = err
		time.Sleep(20 * time.Millisecond)
	}
}

// difference returns an error that names an asset whose dates differ. It returns nil if all dates are equal.
func difference(got, want map[string]client.Timestamp) error {
	var ids []string
	for id := range want {
		ids = append(ids, id)
	}
	for id := range got {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if got[id] != want[id] {
			return fmt.Errorf("asset %s is found at %q and listed at %q", id, got[id], want[id])
		}
	}
	return nil
}
