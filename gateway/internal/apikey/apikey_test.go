package apikey

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestHash(t *testing.T) {
	for name, header := range map[string]string{
		"an empty password":    basic("key:"),
		"any password":         basic("key:word:x"),
		"no colon":             basic("key"),
		"no padding":           strings.TrimRight(basic("key:"), "="),
		"a scheme in capitals": strings.Replace(basic("key:"), "Basic", "BASIC", 1),
		"blanks":               " " + strings.Replace(basic("key:"), " ", "   ", 1) + " ",
		"a bearer":             "Bearer key",
	} {
		if got, err := Hash(http.Header{"Authorization": {header}}); err != nil || got != authapi.Hash("key") {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func TestASeedTakesTheKeyTheNameAndTheSecret(t *testing.T) {
	seed := func(authorization, name, secret string) string {
		t.Helper()
		got, err := Seed(http.Header{"Authorization": {authorization}}, name, []byte(secret))
		if err != nil || len(got) != 64 {
			t.Fatalf("got %s, %v", got, err)
		}
		return got
	}
	want := seed(basic("key:"), "name", "secret")
	for name, same := range map[string]string{
		"again":               seed(basic("key:"), "name", "secret"),
		"with a password":     seed(basic("key:word"), "name", "secret"),
		"the key as a bearer": seed("Bearer key", "name", "secret"),
	} {
		if same != want {
			t.Errorf("%s it is another", name)
		}
	}
	for name, other := range map[string]string{
		"key":    seed(basic("key2:"), "name", "secret"),
		"name":   seed(basic("key:"), "name2", "secret"),
		"secret": seed(basic("key:"), "name", "secret2"),
	} {
		if other == want {
			t.Errorf("with another %s it is the same", name)
		}
	}
	if got, err := Seed(http.Header{}, "name", []byte("secret")); fault.KindOf(err) != fault.Unauthorized || got != "" {
		t.Errorf("without a key: %s, %v", got, err)
	}
}

func TestHashRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		says   string
	}{
		"none":              {nil, "API key is needed"},
		"two":               {[]string{basic("key:"), basic("key:")}, "more than once"},
		"too long":          {[]string{basic(strings.Repeat("k", 2000))}, "too long"},
		"empty":             {[]string{""}, "scheme"},
		"no Base64":         {[]string{"Basic ???"}, "Base64"},
		"an empty key":      {[]string{basic(":hunter2")}, "empty"},
		"a scheme alone":    {[]string{"Bearer"}, "empty"},
		"another scheme":    {[]string{"Digest key"}, "scheme"},
		"the key by itself": {[]string{"key"}, "scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Hash(http.Header{"Authorization": c.values})
			if fault.KindOf(err) != fault.Unauthorized || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
}

func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{basic("key:"), basic(":"), "Bearer key", "Basic", "Basic =", "basic\tx", "", "Basic " + strings.Repeat("A", 2000), "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		hash, err := Hash(http.Header{"Authorization": {header}})
		if err != nil && fault.KindOf(err) != fault.Unauthorized || err == nil && len(hash) != 64 {
			t.Fatalf("%q: %q, %v", header, hash, err)
		}
		if err == nil && hash == authapi.Hash("") {
			t.Fatalf("%q: an empty key passes", header)
		}
	})
}

// fake is a Verifier that a test can count, hold up and break.
type fake struct {
	asked atomic.Int64
	begun chan struct{} // sent to with each question, if there is one
	hold  chan struct{} // closed to let answers go, if there is one
	err   error
}

func (f *fake) VerifyKey(_ context.Context, hash string) (identity.Identity, error) {
	f.asked.Add(1)
	if f.hold != nil {
		f.begun <- struct{}{}
		<-f.hold
	}
	return identity.Identity{Broker: "of " + hash}, f.err
}

func TestCacheAsksOnceWithinItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int64 // questions for two calls within the time
	}{
		"a known key":      {nil, 1},
		"an unknown key":   {fault.New(fault.Unauthorized, fault.Header, "Authorization", "no"), 1},
		"no answer at all": {fault.New(fault.Unavailable, fault.URL, "x", "down"), 2},
		"a broken answer":  {errors.New("broken"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			from := &fake{err: c.err}
			cache := Cached(from, time.Second, func() time.Time { return now })
			for range 2 {
				if got, err := cache.VerifyKey(t.Context(), "h"); err != c.err || err == nil && got.Broker != "of h" {
					t.Errorf("got %+v, %v", got, err)
				}
			}
			if got := from.asked.Load(); got != c.want {
				t.Errorf("asked %d times, want %d", got, c.want)
			}
			now = now.Add(time.Second)
			cache.VerifyKey(t.Context(), "h")
			if got := from.asked.Load(); got != c.want+1 {
				t.Errorf("asked %d times after the time was over, want %d", got, c.want+1)
			}
		})
	}
}

func TestCacheAsksOnceForManyAtOnce(t *testing.T) {
	from := &fake{begun: make(chan struct{}), hold: make(chan struct{})}
	cache := Cached(from, time.Second, time.Now)
	impatient, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := cache.VerifyKey(impatient, "h")
		first <- err
	}()
	<-from.begun
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := cache.VerifyKey(t.Context(), "h"); err != nil || got.Broker != "of h" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	close(from.hold)
	wg.Wait()
	if got := from.asked.Load(); got != 1 {
		t.Errorf("asked %d times", got)
	}
}

func TestCacheIsBounded(t *testing.T) {
	cache := Cached(&fake{}, time.Minute, time.Now)
	for i := range 2*maxEntries + 1 {
		if _, err := cache.VerifyKey(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(cache.entries); got > maxEntries {
		t.Errorf("it holds %d entries", got)
	}
}

func TestANewKeyIsSoonKnown(t *testing.T) {
	now := time.Unix(0, 0)
	from := &fake{err: fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")}
	cache := Cached(from, time.Hour, func() time.Time { return now })
	if _, err := cache.VerifyKey(t.Context(), "h"); fault.KindOf(err) != fault.Unauthorized {
		t.Fatalf("got %v", err)
	}
	from.err = nil // the key is made
	now = now.Add(unknownTTL)
	if _, err := cache.VerifyKey(t.Context(), "h"); err != nil {
		t.Errorf("got %v", err)
	}
	from.err = errors.New("not to be asked")
	now = now.Add(time.Hour - time.Nanosecond)
	if _, err := cache.VerifyKey(t.Context(), "h"); err != nil {
		t.Errorf("a known key is not kept for its time: %v", err)
	}
}
