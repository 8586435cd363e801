package endings

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/shared/authapi"
	"asset-registry/shared/closing"
	"asset-registry/shared/testing/expect"
)

// talk is an auth service that gives fixed answers, and notes the requests.
type talk struct {
	answers []authapi.EndingsResponse // an answer without endings and without Behind is an error
	asked   []authapi.EndingsRequest
}

var errAway = errors.New("away")

func (a *talk) Endings(ctx context.Context, r authapi.EndingsRequest) (answer authapi.EndingsResponse, err error) {
	if len(a.answers) == 0 {
		<-ctx.Done()
		return answer, ctx.Err()
	}
	a.asked = append(a.asked, r)
	answer, a.answers = a.answers[0], a.answers[1:]
	if !answer.Behind && len(answer.Endings) == 0 {
		err = errAway
	}
	return answer, err
}

// TestAKeeperSendsAllEndingsToAStoreThatIsBehind answers a keeper: with endings, with a failure, and then that the
// store of keys is behind. The keeper must keep the endings, pause after the failure, and send all that it has in
// pages.
func TestAKeeperSendsAllEndingsToAStoreThatIsBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path)
		var told []authapi.Ending
		for i := range authapi.MaxEndings {
			told = append(told, authapi.Ending{ID: "key " + string(rune('A'+i)), Seq: 1})
		}
		told = append(told, authapi.Ending{ID: authapi.HeadID, Seq: 1, Hash: "one"})
		mark := []authapi.Ending{{ID: authapi.HeadID, Seq: 7, Hash: "seven"}}
		auth := &talk{answers: []authapi.EndingsResponse{
			{Endings: told}, {}, {Behind: true}, {Behind: true}, {Endings: mark},
		}}
		began := time.Now()
		k := keep(t, s, auth)
		synctest.Wait()
		time.Sleep(least + pause)
		synctest.Wait()
		k.Close()
		if took := time.Since(began); took != least+pause || len(auth.asked) != 5 {
			t.Fatalf("got %d questions in %v, want 5, one after %v and one after %v", len(auth.asked), took, least, pause)
		}
		var sent []authapi.Ending
		for i, last := range []bool{false, true} {
			r := auth.asked[3+i]
			if r.Last != last || r.At.Hash != "one" || len(r.Endings) > authapi.MaxEndings {
				t.Errorf("page %d: got %d endings at %v, last: %t; want %d at most, last: %t",
					i, len(r.Endings), r.At, r.Last, authapi.MaxEndings, last)
			}
			sent = append(sent, r.Endings...)
		}
		if len(sent) != len(told) || !slices.ContainsFunc(sent, func(e authapi.Ending) bool { return e.ID == told[3].ID }) {
			t.Errorf("got %d endings in the pages, want all %d", len(sent), len(told))
		}
		if at, err := s.Ending(t.Context(), authapi.HeadID); err != nil || at.Hash != "seven" {
			t.Errorf("got the newest entry %v, %v; want the one of the new chain", at, err)
		}
	})
}

func open(t *testing.T, path string) *boltstore.Store {
	t.Helper()
	s := expect.Get(boltstore.Open(path, boltstore.Options{Now: time.Now}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// restless is an auth service that answers at once, and counts the questions.
type restless int

func (r *restless) Endings(context.Context, authapi.EndingsRequest) (authapi.EndingsResponse, error) {
	*r++
	return authapi.EndingsResponse{}, nil
}

// TestAnAnswerAtOnceIsNoLoop has an auth service that does not wait.
func TestAnAnswerAtOnceIsNoLoop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path)
		var asked restless
		k := keep(t, s, &asked)
		time.Sleep(time.Second)
		synctest.Wait()
		k.Close()
		if want := restless(time.Second/least) + 1; asked > want || asked < want-1 {
			t.Errorf("got %d questions in a second, want %d", asked, want)
		}
	})
}

// keep keeps endings until the list is closed.
func keep(t *testing.T, s Store, auth Auth) (k closing.List) {
	k.Go(t.Context(), func(ctx context.Context) { Keep(ctx, s, auth, slog.New(slog.DiscardHandler)) })
	return k
}
