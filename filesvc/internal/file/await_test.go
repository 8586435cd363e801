package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// page1 is a feed with one asset, whose documents name the files in this list.
type page1 []Named

func (p page1) After(_ context.Context, position int64) ([]Named, int64, error) {
	if position > 0 {
		return nil, position, nil
	}
	return p, 1, nil
}

// completions notes each asset whose documents were completed. For some assets, it returns an error instead.
type completions struct {
	done []string
	fail map[string]error
}

func (c *completions) Complete(_ context.Context, asset string, f File) error {
	if err := c.fail[asset]; err != nil {
		return err
	}
	c.done = append(c.done, fmt.Sprintf("%s of %d bytes in %s", f.SHA256[:4], f.Size, asset))
	return nil
}

// TestDocumentsAreCompleted has documents that name files before the bytes of the files arrive. They must be
// completed once the bytes are there, even after a failure.
func TestDocumentsAreCompleted(t *testing.T) {
	b := newBench()
	var files []File
	for range 3 {
		f := expect.Get(b.Register(t.Context(), broker, sum("content")))(t)
		files = append(files, f)
	}
	assets := &completions{fail: map[string]error{"gone": fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found")}}
	follower := Follower{Service: b.Service, Awaited: b.memory, Documents: assets, Feed: page1{
		{Naming{files[0].ID, "a"}, false, false}, {Naming{files[0].ID, "b"}, false, false}, {Naming{files[0].ID, "gone"}, false, false},
		{Naming{files[0].ID, "whole"}, true, false}, {Naming{files[1].ID, "later"}, false, false}, {Naming{"0", "unknown"}, false, false},
		{Naming{files[2].ID, "removed"}, false, false},
	}}
	expect.OK(t, follower.Read(t.Context()))
	look := func(what string, want ...string) {
		t.Helper()
		slices.Sort(assets.done)
		expect.ErrorIf(t, !slices.Equal(assets.done, want), "%s: got %q completed, want %q", what, assets.done, want)
		assets.done = nil
	}
	expect.OK(t, follower.complete(t.Context()))
	look("before the bytes")
	expect.Get(b.Remove(t.Context(), admin, files[2].ID, "it will never have bytes"))(t)
	expect.Get(b.Upload(t.Context(), broker, files[0].ID, upload("content")))(t)
	assets.fail["b"] = errors.New("away")
	if err := follower.complete(t.Context()); err == nil {
		t.Error("got no error, want one of the asset that could not be changed")
	}
	look("one asset is away", "ed70 of 7 bytes in a")
	delete(assets.fail, "b")
	expect.OK(t, follower.complete(t.Context()))
	look("it is back", "ed70 of 7 bytes in b")
	if left, err := b.memory.Awaiting(t.Context(), Naming{}, 10); err != nil || len(left) != 1 || left[0].Asset != "later" {
		t.Errorf("got %v, %v, want the file that has not come", left, err)
	}
}
