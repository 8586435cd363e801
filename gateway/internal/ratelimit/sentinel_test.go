package ratelimit

import (
	"testing"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/redistest"
)

func TestAFailoverBySentinelsHealsByItself(t *testing.T) {
	const password = "p@ss"
	primary := redistest.Start(t, "--requirepass", password, "--masterauth", password)
	primary.Replicate(t)
	sentinel := primary.Watch(t, "limits", password)
	// No sentinel listens at the first address of the list.
	r, err := OpenRedis("redis+sentinel://:p%40ss@127.0.0.1:1," + sentinel + "/limits/0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	rate := limiter.Rate{Limit: 1000, Period: time.Hour}
	take := func() error {
		bucket := Bucket{Key: Key{Name: "client"}, Cost: 1, Rates: []limiter.Rate{rate}}
		_, err := direct{r}.Take(t.Context(), []Bucket{bucket}, nil)
		return err
	}
	until := func(when string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			err := take()
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: got %v, want a token", when, err)
			}
		}
	}
	until("at first")
	primary.Kill(t)
	if err := take(); err == nil {
		t.Error("while the primary is down: got a token, want an error")
	}
	until("after a failover")
}

func TestAddressesOfSentinelsAreChecked(t *testing.T) {
	for _, c := range []struct {
		url  string
		good bool
	}{
		{"redis+sentinel://a,b:2/limits", true},
		{"rediss+sentinel://:p@a,b/limits/3", true},
		{"redis+sentinel://a,b", false},
		{"redis+sentinel://a/limits/x", false},
		{"redis+sentinel://a/limits?colour=", false},
	} {
		if err := CheckURL(c.url); (err == nil) != c.good {
			t.Errorf("%s: got %v, want it valid: %t", c.url, err, c.good)
		}
	}
}
