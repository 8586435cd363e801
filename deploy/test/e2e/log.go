package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/translog"
)

// checkpointWithin is how long it may take, on a busy machine, until a checkpoint covers a change.
const checkpointWithin = 30 * time.Second

// logFile reads a file of the public log.
func (a api) logFile(t *testing.T, path string) (body []byte, header http.Header) {
	t.Helper()
	resp, err := http.Get(a.base + "/log/" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, resp.Header
	}
	return body, resp.Header
}

// checkpoint returns the newest checkpoint, or the zero Checkpoint if the log has none yet. It does not know the
// log's key, so it does not verify the signature.
func (a api) checkpoint(t *testing.T) translog.Checkpoint {
	t.Helper()
	body, _ := a.logFile(t, "checkpoint")
	if body == nil {
		return translog.Checkpoint{}
	}
	c, err := translog.Unverified(body)
	if err != nil {
		t.Fatalf("checkpoint: %v in\n%s", err, body)
	}
	return c
}

// leaves reads the leaves of a checkpoint, and checks that the root of their tree is the checkpoint's root.
func (a api) leaves(t *testing.T, c translog.Checkpoint) (leaves []translog.Leaf) {
	t.Helper()
	if c.Size == 0 { // there may be no checkpoint yet
		return nil
	}
	var tree translog.Tree
	for first := int64(0); first < c.Size; first += translog.TileWidth {
		tile := translog.BundleOf(first, c.Size)
		body, header := a.logFile(t, tile.Path())
		if body == nil { // the partial tile has become full since the checkpoint
			tile = tile.Full()
			body, header = a.logFile(t, tile.Path())
		}
		if got := header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: got Cache-Control %q, want immutable", tile.Path(), got)
		}
		entries, err := translog.ParseBundle(body, tile.Width)
		if err != nil {
			t.Fatalf("%s: %v", tile.Path(), err)
		}
		entries = entries[:min(int64(len(entries)), c.Size-first)]
		if tree, _, err = tree.Append(entries); err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			leaf, err := translog.ParseLeaf(entry)
			if err != nil {
				t.Fatalf("%s: %v in %s", tile.Path(), err, entry)
			}
			leaves = append(leaves, leaf)
		}
	}
	if tree.Root() != c.Root {
		t.Errorf("got the root %s of %d leaves, want the checkpoint's root, %s", tree.Root(), tree.Size(), c.Root)
	}
	return leaves
}

// leavesUpTo waits until the newest checkpoint covers a position, and returns the leaves of that checkpoint.
func (a api) leavesUpTo(t *testing.T, position int64) []translog.Leaf {
	t.Helper()
	for deadline := time.Now().Add(checkpointWithin); ; time.Sleep(200 * time.Millisecond) {
		leaves := a.leaves(t, a.checkpoint(t))
		if n := len(leaves); n > 0 && leaves[n-1].Position >= position {
			return leaves
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d leaves after %s, want one of %d", len(leaves), checkpointWithin, position)
		}
	}
}

// testPublicLog checks that each change of a public asset gets a leaf in the public log, and that nothing else gets
// one (docs/log.md, "Leaves").
// Promises: log-leaves, leaf-order
func testPublicLog(t *testing.T, a api) {
	draft := a.create(t, validAsset())
	hidden := a.publish(t, validAsset().set("mode", "test"))
	c := a.publish(t, validAsset())
	c.answer = a.patch(t, c, fields{"description": "ще раз"}).must(t, 200)
	position := micros(t, c.data()["dateModified"])
	leaves := a.leavesUpTo(t, position)
	var got []string
	for i, leaf := range leaves {
		if i > 0 && leaf.Position <= leaves[i-1].Position {
			t.Errorf("leaf %d: got the position %d, want one after %d", i, leaf.Position, leaves[i-1].Position)
		}
		switch leaf.Asset {
		case draft.id, hidden.id:
			t.Errorf("got the leaf %+v, want none of a draft or a test asset", leaf)
		case c.id:
			got = append(got, fmt.Sprint(leaf.Kind, " ", leaf.Revision))
		}
	}
	equal(t, "leaves of the asset", strings.Join(got, ", "), "publish 2, change 3")
	if n := len(leaves); leaves[n-1].Asset == c.id {
		equal(t, "position of the newest leaf", leaves[n-1].Position, position)
	}
}

// micros returns a timestamp in microseconds since the epoch.
func micros(t *testing.T, timestamp any) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text(timestamp))
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}
