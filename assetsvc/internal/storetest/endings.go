package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/endings"
	"asset-registry/shared/authapi"
)

// RunEndings checks the contract of endings.Store. The opener works as the one of Run.
func RunEndings(t *testing.T, open Opener) {
	opened := func(t *testing.T) endings.Store { return open(t, "a", at(start)).(endings.Store) }
	t.Run("a later ending replaces an earlier one", func(t *testing.T) { testReplacedEndings(t, opened(t)) })
	t.Run("endings are listed in pages", func(t *testing.T) { testEndingPages(t, opened(t)) })
	t.Run("the newest of several at the same time stays", func(t *testing.T) { testManyEndings(t, opened(t)) })
	t.Run("endings survive a restart", func(t *testing.T) {
		s := open(t, "a", at(start))
		if err := s.(endings.Store).KeepEndings(t.Context(), []authapi.Ending{ending("head", 3)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		checkEnding(t, opened(t), ending("head", 3))
	})
}

func ending(id string, seq int64) authapi.Ending {
	return authapi.Ending{ID: id, Seq: seq, Hash: fmt.Sprint(seq), Subject: "key ключ", Closed: &start, Newest: int(seq)}
}

func checkEnding(t *testing.T, s endings.Store, want authapi.Ending) {
	t.Helper()
	got, err := s.Ending(t.Context(), want.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("ending %s: got %v and the lines with +, want those with -:\n%s", want.ID, err, diff)
	}
}

func testReplacedEndings(t *testing.T, s endings.Store) {
	if none, err := s.Ending(t.Context(), "one"); err != nil || none.ID != "" {
		t.Errorf("an empty store: got %v, %v; want the zero ending", none, err)
	}
	for _, step := range []struct{ seq, want int64 }{{5, 5}, {5, 5}, {4, 5}, {9, 9}, {6, 9}} {
		if err := s.KeepEndings(t.Context(), []authapi.Ending{ending("other", 1), ending("one", step.seq)}); err != nil {
			t.Fatal(err)
		}
		checkEnding(t, s, ending("one", step.want))
		checkEnding(t, s, ending("other", 1))
	}
}

func testEndingPages(t *testing.T, s endings.Store) {
	var want []authapi.Ending
	for i := range 7 {
		want = append(want, ending(fmt.Sprint("key ", i), int64(i+1)))
	}
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	if err := s.KeepEndings(t.Context(), backwards); err != nil {
		t.Fatal(err)
	}
	var got []authapi.Ending
	for after := ""; ; {
		page, err := s.Endings(t.Context(), after, 3)
		if err != nil || len(page) > 3 {
			t.Fatalf("got %d endings, %v; want at most 3", len(page), err)
		}
		if len(page) == 0 {
			break
		}
		got, after = append(got, page...), page[len(page)-1].ID
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got the lines with +, want those with -:\n%s", diff)
	}
}

func testManyEndings(t *testing.T, s endings.Store) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := s.KeepEndings(t.Context(), []authapi.Ending{ending("head", int64(i+1))}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	checkEnding(t, s, ending("head", 8))
}
