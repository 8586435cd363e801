package assetclient_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// newClient returns a client that calls a handler, and the signer of its requests.
func newClient(t *testing.T, handler http.HandlerFunc) (*assetclient.Client, *identity.Signer) {
	t.Helper()
	signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), 32)}, time.Now)
	expect.OK(t, err)
	return assetclient.New(httpserver.InProcess(handler), signer), signer
}

func TestLogReadsTheCheckpointAndItsNewestLeaf(t *testing.T) {
	key, err := translog.GenerateKey(translog.ForLog, "registry.example/log")
	expect.OK(t, err)
	const size, first = 300, 1790000000000000
	var bundle []byte
	for i := 256; i < size; i++ {
		leaf := translog.Leaf{Position: first + int64(i), Asset: strings.Repeat("0", 32), Revision: 1, Kind: translog.Withdraw}
		bundle, err = translog.AppendEntry(bundle, leaf.Encode())
		expect.OK(t, err)
	}
	signed, err := translog.Sign(translog.Checkpoint{Origin: "registry.example/log", Size: size}, key)
	expect.OK(t, err)
	client, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		parts := map[string][]byte{"/log/checkpoint": signed, "/log/tile/entries/001.p/44": bundle}
		expect.ErrOf(t, nil, "")(w.Write(parts[r.URL.Path]))
	})
	got, err := client.Log(t.Context())
	expect.OK(t, err)
	if got.Size != size || got.Origin != "registry.example/log" || !got.Newest.Equal(time.UnixMicro(first+size-1)) ||
		len(got.Signers) != 1 {
		t.Errorf("got %+v, want %d leaves, the time of the last one and 1 signature", got, size)
	}
}

func TestHistoryIsReadAsAnAdministrator(t *testing.T) {
	id := strings.Repeat("0a", 16)
	var caller identity.Identity
	var signer *identity.Signer
	client, signer := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		var err error
		if caller, err = signer.Verify(r.Header.Get(identity.Header)); err != nil {
			t.Error(err)
		}
		if got, want := r.URL.String(), "/api/2.5/assets/"+id+"/revisions?limit=20&offset=x%26y"; !strings.HasSuffix(got, want) {
			t.Errorf("got a request of %s, want %s", got, want)
		}
		fmt.Fprint(w, `{"data":[{"revision":3,"date":"2026-11-22T11:30:00.000000+02:00",
			"author":{"broker":"b","key":"k","role":"broker"},"changes":[{"op":"replace","path":"/title","value":"x"}]},
			{"revision":2,"date":"2026-11-22T11:29:00.000000+02:00","author":{"broker":"b","key":"k","role":"broker"},
			"erased":{"date":"2026-11-22T11:31:00.000000+02:00","author":{"broker":"a","key":"r","role":"administrator"}}}],
			"next_page":{"offset":"z"}}`)
	})
	got, err := client.History(t.Context(), "key-1", id, "x&y")
	expect.OK(t, err)
	by := assetclient.Author{Broker: "b", Key: "k", Role: "broker"}
	at := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	want := assetclient.History{Older: "z", Changes: []assetclient.Change{
		{Revision: 3, Date: at, Author: by, Changes: []assetclient.Operation{
			{Op: "replace", Path: "/title", Value: []byte(`"x"`)},
		}},
		{Revision: 2, Date: at.Add(-time.Minute), Author: by, Erased: &assetclient.Erasure{
			Date: at.Add(time.Minute), Author: assetclient.Author{Broker: "a", Key: "r", Role: "administrator"},
		}},
	}}
	expect.NoDiff(t, cmp.Diff(want, got), "the history")
	if caller.Role != identity.Administrator || caller.KeyID != "key-1" {
		t.Errorf("got the caller %+v, want an administrator with the key of the operator", caller)
	}
}

func TestAnswersThatCannotBeUsedAreErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   fault.Kind
	}{
		{"no log", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"status":"error","errors":[{"location":"url","name":"path","description":"no"}]}`)
		}, fault.NotFound},
		{"a server that is not ready", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, fault.Unavailable},
		{"an endless answer", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 4<<20))
		}, fault.Internal},
		{"no checkpoint", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "{}")
		}, fault.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, _ := newClient(t, c.answer)
			if got, err := client.Log(t.Context()); err == nil || fault.KindOf(err) != c.want {
				t.Errorf("the log: got %+v, %v, want a fault of kind %v", got, err, c.want)
			}
		})
	}
	broken := errors.New("refused")
	signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), 32)}, time.Now)
	expect.OK(t, err)
	client := assetclient.New(failing{broken}, signer)
	if _, err := client.History(t.Context(), "k", "id", ""); fault.KindOf(err) != fault.Unavailable || !errors.Is(err, broken) {
		t.Errorf("without a server: got %v, want Unavailable and the cause", err)
	}
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }
