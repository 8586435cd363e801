package releases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry.example/client"
	"asset-registry/deploy/test/rig/clients"
	"asset-registry/shared/testing/expect"
)

// plan is the file that belongs to each document.
var plan = []byte("%PDF-1.4\n" + strings.Repeat("x", 100_000))

// story is what brokers and a synchroniser do with a registry while its versions change.
type story struct {
	t                       *testing.T
	broker, broker3, reader *client.Client
	search                  bool // whether there is a search service
	new                     client.Fields
	creations               []*creation // each step adds some, and repeats all
	assets                  []*kept
	position                client.Position // position of the synchroniser in the feed
	followed                []string        // ids of the assets that the synchroniser has seen
}

// creation is a creation that is repeated byte for byte.
type creation struct {
	key, reference string
	made           client.Created
}

// kept is what the owner of an asset remembers about it.
type kept struct {
	id, file string // id of the asset, and address of its document's file
	access   client.Access
	owner    *client.Client
	last     string // the JSON of the asset when it was last read
}

func newStory(t *testing.T, address string, search bool) *story {
	t.Helper()
	s := &story{t: t, search: search}
	for key, c := range map[client.Secret]**client.Client{"broker": &s.broker, "broker3": &s.broker3, "": &s.reader} {
		var err error
		*c, err = client.New(client.Config{URL: address, Key: key})
		expect.OK(t, err)
	}
	var creation struct{ Data client.Fields }
	expect.OK(t, json.Unmarshal([]byte(clients.Creation), &creation))
	s.new = creation.Data
	return s
}

// goOn checks that no data has changed, and then changes and adds data. The parameter `when` says which versions run.
func (s *story) goOn(when string) {
	s.t.Helper()
	must := func(what string, err error) {
		s.t.Helper()
		expect.Must(s.t, err, "%s: %s", when, what)
	}
	ctx := s.t.Context()
	for _, a := range s.assets {
		must("read an asset", s.unchanged(ctx, a, when))
		_, err := a.owner.Patch(ctx, a.id, client.Fields{"description": when}, client.Write{Token: a.access.Token})
		must("change an asset", err)
		must("read the asset again", s.remember(ctx, a))
	}
	key := fmt.Sprint("step-", len(s.creations))
	s.creations = append(s.creations, &creation{key: key}, &creation{key: key, reference: key})
	for _, c := range s.creations {
		must("repeat a creation", s.repeat(ctx, c, when))
	}
	must("hand over", s.handOver(ctx))
	a, err := s.create(ctx)
	must("create an asset", err)
	must("follow", s.follow(ctx, a.id, when))
	if s.search {
		must("search", s.find(ctx, a.id))
	}
}

// repeat repeats a creation, and changes its asset, so that this version stores the asset anew. If nobody has made the
// creation yet, repeat makes it.
func (s *story) repeat(ctx context.Context, c *creation, when string) error {
	made, err := s.broker.CreateReferenced(ctx, s.new, c.reference, c.key)
	if err != nil {
		return err
	}
	if c.made.Asset.ID == "" {
		c.made = made
	}
	if made.Asset.ID != c.made.Asset.ID || made.Access != c.made.Access {
		s.t.Errorf("%s: got asset %s for a repeated creation, with the same tokens: %t; want %s and true", when, made.Asset.ID,
			made.Access == c.made.Access, c.made.Asset.ID)
	}
	_, err = s.broker.Patch(ctx, made.Asset.ID, client.Fields{"description": when}, client.Write{Token: made.Access.Token})
	return err
}

// unchanged checks that an asset, and the file of its document, are as before.
func (s *story) unchanged(ctx context.Context, a *kept, when string) error {
	text, err := s.reader.GetJSON(ctx, a.id)
	if err != nil {
		return err
	}
	if string(text) != a.last {
		s.t.Errorf("%s: got the asset %s, want %s", when, text, a.last)
	}
	// The file service learns from the feed that a document refers to a file. Before that, the file is not public.
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		status, file, err := read(a.file)
		switch {
		case err != nil:
			return err
		case string(file) == string(plan):
			return nil
		case status != http.StatusForbidden || time.Since(began) > 10*time.Second:
			s.t.Errorf("%s: got a file of %d bytes and status %d, want %d bytes", when, len(file), status, len(plan))
			return nil
		}
	}
}

func read(url string) (status int, body []byte, err error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, body, err
}

func (s *story) remember(ctx context.Context, a *kept) error {
	text, err := s.reader.GetJSON(ctx, a.id)
	a.last = string(text)
	return err
}

// create creates an asset, publishes it, and adds a document with a file.
func (s *story) create(ctx context.Context) (*kept, error) {
	made, err := s.broker.CreateFields(ctx, s.new, "")
	if err != nil {
		return nil, err
	}
	a := &kept{id: made.Asset.ID, access: made.Access, owner: s.broker}
	s.assets = append(s.assets, a)
	path := filepath.Join(s.t.TempDir(), "plan.pdf")
	write(s.t, path, plan, 0o600)
	w := client.Write{Token: a.access.Token}
	if _, err := s.broker.Publish(ctx, a.id, w); err != nil {
		return nil, err
	}
	document, err := s.broker.Documents(a.id).Upload(ctx, path, client.Document{DocumentType: "notice"}, w)
	if err != nil {
		return nil, err
	}
	a.file = document.URL
	return a, s.remember(ctx, a)
}

// handOver gives the newest asset to another broker. It uses the asset's transfer token, which another version may
// have made. Afterwards, the former owner's token must be refused.
func (s *story) handOver(ctx context.Context) error {
	if len(s.assets) == 0 {
		return nil
	}
	a := s.assets[len(s.assets)-1]
	made, err := s.broker3.CreateTransfer(ctx)
	if err != nil {
		return err
	}
	if _, err := s.broker3.TakeOver(ctx, a.id, made.Transfer.ID, a.access.Transfer); err != nil {
		return err
	}
	_, err = s.broker.Patch(ctx, a.id, client.Fields{"title": "stolen"}, client.Write{Token: a.access.Token})
	expect.Equal(s.t, client.StatusOf(err), http.StatusForbidden, "status for the former owner")
	a.access, a.owner = made.Access, s.broker3
	return s.remember(ctx, a)
}

// follow follows the feed from the last position, with the cookie in this position, until the feed has the asset.
func (s *story) follow(ctx context.Context, id, when string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for page, err := range s.reader.Follow(ctx, client.Feed{Position: s.position}, 50*time.Millisecond) {
		if err != nil {
			return err
		}
		for _, a := range page.Assets {
			s.followed = append(s.followed, a.ID)
		}
		if before := s.position.ServerID; before != "" && page.Next.ServerID != before {
			s.t.Errorf("%s: got the cookie %s, want %s", when, page.Next.ServerID, before)
		}
		s.position = page.Next
		if slices.Contains(s.followed, id) {
			return nil
		}
	}
	return errors.New("the feed has ended")
}

// find searches until the index has the asset.
func (s *story) find(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		found, err := s.reader.Search(ctx, url.Values{"q": {id}})
		if err == nil && found.Total > 0 {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
