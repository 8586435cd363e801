package admin_test

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func TestARequestOfOnceMakesItsChangeOnce(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	head, err := w.service.Head(t.Context())
	expect.FatalIf(t, err != nil || head.Seq != 1, "got head %v, %v; want entry 1", head, err)
	by := admin.Actor{Name: "key-1", Role: apikey.Operator, RequestID: "form-1", Once: &admin.Once{After: head.Seq}}
	n := adminapi.NewKey{Broker: "b", KeySettings: adminapi.KeySettings{Name: "n", Role: "broker"}}
	if _, _, err := w.service.CreateKey(t.Context(), by, adminapi.NewKey{}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an invalid change: got %v, want a fault of kind Invalid", err)
	}
	var group sync.WaitGroup
	done, made := make(chan error, 8), make(chan string, 8)
	for range cap(done) {
		group.Go(func() {
			k, secret, err := w.service.CreateKey(t.Context(), by, n)
			if err != nil {
				done <- err
			} else if secret != "" {
				made <- k.ID
			}
		})
	}
	group.Wait()
	if len(made) != 1 || len(done) != cap(done)-1 {
		t.Fatalf("got %d keys and %d errors, want 1 and %d", len(made), len(done), cap(done)-1)
	}
	id := <-made
	for range cap(done) - 1 {
		was, ok := errors.AsType[*admin.DoneError](<-done)
		if !ok || was.Entry.Subject != "key "+id || was.Entry.Action != "key.create" {
			t.Errorf("got %v, want a DoneError about key.create of key %s", was, id)
		}
	}
	if _, _, err := w.service.RotateKey(t.Context(), by, id, 0); err == nil {
		t.Error("another change with the same request id: got no error, want one")
	}
	by.RequestID = "form-2"
	if _, _, err := w.service.CreateKey(t.Context(), by, n); err != nil {
		t.Errorf("another request id: got %v, want no error", err)
	}
	if keys, _, err := w.service.Keys(t.Context(), admin.Filter{Limit: 10}); err != nil || len(keys) != 2 {
		t.Errorf("got %d keys, %v; want 2", len(keys), err)
	}
}

func TestAnAddressMaySendSoManyWrongKeys(t *testing.T) { synctest.Test(t, wrongKeys) }

func wrongKeys(t *testing.T) {
	time.Sleep(300 * time.Millisecond) // so that the windows do not begin when a new second begins
	w := newWorld(t)
	_, good := w.key(t, "", func(n *adminapi.NewKey) { n.Role, n.Levels = "operator", "" })
	// try returns the kind of the fault, or -1 if the key is accepted.
	try := func(key, from string) fault.Kind {
		_, err := w.operators.Operator(t.Context(), authapi.Hash(key), netip.MustParseAddr(from))
		if err == nil {
			return -1
		}
		return fault.KindOf(err)
	}
	for range 100 {
		if got := try("", "2001:db8::1"); got != fault.Unauthorized { // a request without a key does not count as a guess
			t.Fatalf("no key: got kind %v, want %v", got, fault.Unauthorized)
		}
	}
	for n := range 30 {
		if got := try("wrong", "2001:db8::1"); got != fault.Unauthorized {
			t.Fatalf("guess %d: got kind %v, want %v", n, got, fault.Unauthorized)
		}
	}
	expect.Equal(t, try(good, "2001:db8::ffff"), fault.TooMany, "the same network: kind")
	expect.Equal(t, try(good, "2001:db8:0:1::1"), -1, "another network: kind")
	expect.Equal(t, try(good, "192.0.2.1"), -1, "another address: kind")
	before := w.found
	if got := try("wrong", "2001:db8::1"); got != fault.TooMany || w.found != before {
		t.Errorf("a guess too many: got kind %v after %d lookups, want %v after none", got, w.found-before, fault.TooMany)
	}
	time.Sleep(12500 * time.Millisecond)
	_, err := w.operators.Operator(t.Context(), authapi.Hash(good), netip.MustParseAddr("2001:db8::1"))
	f, ok := errors.AsType[*fault.Error](err)
	const real = 47500 * time.Millisecond
	if !ok || f.RetryAfter < real || f.RetryAfter > real+time.Second || !strings.Contains(f.Error(), "wait 48 s") {
		t.Fatalf("12.5 s later: got %v, want a wait of 47.5 s, rounded up", err)
	}
	time.Sleep(real - 1)
	expect.Equal(t, try(good, "2001:db8::1"), fault.TooMany, "before the wait is over: kind")
	time.Sleep(f.RetryAfter - real + 1)
	expect.Equal(t, try(good, "2001:db8::1"), -1, "after the wait: kind")
}
