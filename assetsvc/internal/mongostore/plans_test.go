package mongostore

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// query is a read that a store does often.
type query struct {
	name    string
	do      func(ctx context.Context, s *Store, r registry.Record) error
	in      string // collection
	index   bson.D
	covered bool // the first command reads only the index, and no documents
}

// queries returns the reads of pages, of past revisions and of the record.
func queries() (all []query) {
	for _, mode := range []registry.Mode{registry.Real, registry.Test, registry.All} {
		index := pageIndex
		if mode == registry.All {
			index = allIndex
		}
		for _, bodies := range []int{0, 1 << 20} {
			for _, descending := range []bool{false, true} {
				q := registry.Query{Limit: 3, Mode: mode, Bodies: bodies, Descending: descending}
				all = append(all, query{fmt.Sprintf("page %+v", q), func(ctx context.Context, s *Store, _ registry.Record) error {
					_, err := s.Page(ctx, q)
					return err
				}, "assets", index, true})
			}
		}
	}
	for _, state := range []asset.Status{"", "draft"} {
		for _, mode := range []registry.Mode{registry.Real, registry.Test, registry.All} {
			index := ownStateIndex
			if state == "" {
				index = ownIndex
				if mode != registry.All {
					index = ownModeIndex
				}
			}
			for _, descending := range []bool{false, true} {
				q := registry.Query{Owner: "one", Mode: mode, State: state, Limit: 3, Bodies: 1 << 20, Descending: descending}
				all = append(all, query{fmt.Sprintf("page %+v", q), func(ctx context.Context, s *Store, _ registry.Record) error {
					_, err := s.Page(ctx, q)
					return err
				}, "assets", index, true})
			}
		}
	}
	return append(all,
		query{"log", func(ctx context.Context, s *Store, r registry.Record) error {
			_, err := s.Log(ctx, r.ID, registry.LogQuery{Limit: 3})
			return err
		}, "changes", logIndex, false},
		query{"record", func(ctx context.Context, s *Store, r registry.Record) error {
			_, err := s.Changes(ctx, registry.ChangesQuery{Limit: 3, Bytes: registry.AnySize})
			return err
		}, "changes", recordIndex, false},
	)
}

// sentCommands keeps all commands that a store sends.
type sentCommands struct {
	mu  sync.Mutex
	all []bson.Raw
}

func (c *sentCommands) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, slices.Clone(e.Command))
	}}
}

// take returns the commands with this name on a collection, and then clears the list of commands.
func (c *sentCommands) take(name, collection string) (found []bson.Raw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, command := range c.all {
		if of, ok := command.Lookup(name).StringValueOK(); ok && of == collection {
			found = append(found, command)
		}
	}
	c.all = nil
	return found
}

// fieldNames returns the names of the fields in the document that a command has under the given key.
func fieldNames(t *testing.T, command bson.Raw, of string) (names []string) {
	t.Helper()
	document, ok := command.Lookup(of).DocumentOK()
	if !ok {
		return nil
	}
	elements := expect.Get(document.Elements())(t)
	for _, e := range elements {
		names = append(names, e.Key())
	}
	return names
}

// plan is the result of the command explain, as far as the tests check it.
type plan struct {
	stages    []string // names of the stages of the winning plan
	keys      int64    // index keys that were read
	documents int64    // documents that were read
	entries   int64    // documents that were returned
}

// explain asks MongoDB how it executes a find command.
func explain(t *testing.T, s *Store, find bson.Raw) (p plan) {
	t.Helper()
	var command bson.D
	expect.OK(t, bson.Unmarshal(find, &command))
	command = without(command, "lsid", "$db", "$clusterTime", "readConcern", "maxTimeMS", "$readPreference")
	answer := expect.Get(s.db.assets.Database().RunCommand(t.Context(),
		bson.D{{Key: "explain", Value: command}, {Key: "verbosity", Value: "executionStats"}}).Raw())(t)
	p.keys, _ = answer.Lookup("executionStats", "totalKeysExamined").AsInt64OK()
	p.documents, _ = answer.Lookup("executionStats", "totalDocsExamined").AsInt64OK()
	p.entries, _ = answer.Lookup("executionStats", "nReturned").AsInt64OK()
	winning, _ := answer.Lookup("queryPlanner", "winningPlan").DocumentOK()
	p.stages = stages(winning)
	return p
}

// stages returns the names of all stages of a plan.
func stages(plan bson.Raw) (names []string) {
	elements, _ := plan.Elements()
	for _, e := range elements {
		if name, ok := e.Value().StringValueOK(); ok && e.Key() == "stage" {
			names = append(names, name)
		}
		if inner, ok := e.Value().DocumentOK(); ok {
			names = append(names, stages(inner)...)
		}
		if inner, ok := e.Value().ArrayOK(); ok {
			names = append(names, stages(bson.Raw(inner))...)
		}
	}
	return names
}

// checkPlan asks a real server for the plan of a find command, and checks it.
func checkPlan(t *testing.T, s *Store, q query, covered bool, find bson.Raw) {
	t.Helper()
	p := explain(t, s, find)
	if !slices.Contains(p.stages, "IXSCAN") || slices.Contains(p.stages, "SORT") || slices.Contains(p.stages, "COLLSCAN") {
		t.Errorf("%s: got the stages %v, want IXSCAN without SORT and COLLSCAN", q.name, p.stages)
	}
	if covered && slices.Contains(p.stages, "FETCH") {
		t.Errorf("%s: got the stages %v, want no FETCH", q.name, p.stages)
	}
	// MongoDB reads the key behind each range of keys. Lists of a state have two, one for each mode; bodies have one for
	// each position.
	if p.keys > 2*p.entries+2 || p.documents > p.entries {
		t.Errorf("%s: got %d keys and %d documents read for %d entries, want at most two keys and one document for each",
			q.name, p.keys, p.documents, p.entries)
	}
}

// plansAmong is how many assets the largest collection has in which plans are checked on a real server.
var plansAmong = flag.Int("mongo.plans", 10_000, "number of assets among which plans are checked on a real server")

// addAssets stores assets of one broker, from a number up to another, of which few are drafts and few are test assets. No
// batch wrote them.
func addAssets(t *testing.T, s *Store, from, to int) {
	t.Helper()
	var all []any
	for i := from; i < to; i++ {
		state := "complete"
		if i%100 == 50 {
			state = "draft"
		}
		all = append(all, bson.D{
			{Key: "_id", Value: fmt.Sprintf("%032x", i)}, {Key: "owner", Value: "one"}, {Key: "state", Value: state},
			{Key: "test", Value: i%50 == 0}, {Key: "listed", Value: true}, {Key: "size", Value: int64(2)},
			{Key: "position", Value: int64(i + 1)}, {Key: "revision", Value: int64(1)}, {Key: "body", Value: []byte("{}")},
		})
	}
	for some := range slices.Chunk(all, 500) {
		expect.Get(s.db.assets.InsertMany(t.Context(), some))(t)
	}
}

// TestQueriesNameTheirIndex checks that each read has a hint at its index, so that MongoDB never reads a whole
// collection. On a real server it also checks the plans, among 1,000 assets of one broker and among many.
func TestQueriesNameTheirIndex(t *testing.T) {
	sent, server := &sentCommands{}, mongotest.Start(t)
	s := openWith(t, server.URI(t, "plans"), Options{Monitor: sent.monitor()})
	var r registry.Record
	for range 4 {
		r = mustCreate(t, s)
	}
	if !server.Real {
		checkQueries(t, s, sent, r, false)
		return
	}
	addAssets(t, s, 0, 1000)
	checkQueries(t, s, sent, r, true)
	addAssets(t, s, 1000, *plansAmong)
	checkQueries(t, s, sent, r, true)
}

func checkQueries(t *testing.T, s *Store, sent *sentCommands, r registry.Record, plans bool) {
	t.Helper()
	for _, q := range queries() {
		sent.take("", "")
		expect.OK(t, q.do(t.Context(), s, r))
		finds := sent.take("find", q.in)
		if len(finds) == 0 {
			t.Errorf("%s: got no find in %s", q.name, q.in)
		}
		var keys []string
		for _, e := range q.index {
			keys = append(keys, e.Key)
		}
		for at, find := range finds {
			keys := keys
			if at > 0 && keys[0] == "listed" { // bodies and moved assets, by their positions in all modes
				keys = []string{"listed", "position", "test", "size", "_id"}
			} else if at > 0 && keys[0] == "owner" {
				keys = []string{"owner", "position", "test", "state", "size", "_id"}
			}
			if got := fieldNames(t, find, "hint"); !slices.Equal(got, keys) {
				t.Errorf("%s: got the hint %v, want %v", q.name, got, keys)
			}
			if plans {
				checkPlan(t, s, q, q.covered && at == 0, find)
			}
			limit, limited := find.Lookup("limit").AsInt64OK()
			batch, _ := find.Lookup("batchSize").AsInt64OK()
			if limited && batch <= limit || q.in == "assets" && batch != wholeAnswer {
				t.Errorf("%s: got the batch size %d for %d entries, want one answer with all of them", q.name, batch, limit)
			}
			used := slices.Concat(fieldNames(t, find, "filter"), fieldNames(t, find, "sort"), fieldNames(t, find, "projection"))
			for _, field := range used {
				if q.covered && at == 0 && !slices.Contains(keys, field) {
					t.Errorf("%s: got the field %s, which is not in the index %v", q.name, field, keys)
				}
			}
		}
	}
}

// TestTheRewriteOfAChangeHasABound rewrites a change. The filter of the update must bound the positions of the
// batches that it searches.
func TestTheRewriteOfAChangeHasABound(t *testing.T) {
	sent := &sentCommands{}
	s := openWith(t, mongotest.Start(t).URI(t, "bound"), Options{Monitor: sent.monitor()})
	r := mustCreate(t, s)
	log := expect.Get(s.Log(t.Context(), r.ID, registry.LogQuery{Limit: 1}))(t)
	sent.take("", "")
	if done, err := s.Rewrite(t.Context(), log[0], []byte("another"), nil); err != nil || !done {
		t.Fatalf("got %v, %v; want true", done, err)
	}
	updates := sent.take("update", "changes")
	if len(updates) != 1 {
		t.Fatalf("got %d updates, want 1", len(updates))
	}
	least, bounded := updates[0].Lookup("updates", "0", "q", "at", "$gt").AsInt64OK()
	most, _ := updates[0].Lookup("updates", "0", "q", "at", "$lte").AsInt64OK()
	if !bounded || least != r.Position-maxBatch || most != r.Position {
		t.Errorf("got records from %d to %d, want from %d to %d", least, most, r.Position-maxBatch, r.Position)
	}
}
