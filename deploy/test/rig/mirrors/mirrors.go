// Package mirrors runs mirrors of a registry for tests, and a front that sends readings to a
// mirror and everything else to the registry.
package mirrors

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/routes"
	"asset-registry/shared/sleep"
)

// Start starts a mirror of a registry or of another mirror, without rate limits. It serves
// at addr once Start returns. bin is the folder of the programs.
func Start(ctx context.Context, bin, addr, of, dir string, output *processes.Output, args ...string) (
	*processes.Process, error,
) {
	args = append([]string{"mirror", "--no-limits", "--of", of, "--addr", addr, "--data", dir}, args...)
	return processes.Start(ctx, addr, output, filepath.Join(bin, "registry"), args...)
}

const (
	within = 20 * time.Second // the mirror must catch up
	pause  = 5 * time.Millisecond
)

// Front is an http.Handler. It sends a reading to Mirror, once that has what Origin had when
// the reading came. If the mirror answers 421, the reading goes to Origin, as every other
// request does.
type Front struct {
	Origin, Mirror string // addresses, without a slash at the end
	transport      *http.Transport
	proxy          *httputil.ReverseProxy
}

// NewFront returns a front.
func NewFront(origin, mirror string) *Front {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression, transport.MaxIdleConnsPerHost = true, 100
	f := &Front{Origin: origin, Mirror: mirror, transport: transport}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery // as the client sent them
		},
		Transport:     f,
		FlushInterval: -1, // at once
	}
	return f
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.proxy.ServeHTTP(w, r) }

// RoundTrip implements http.RoundTripper.
func (f *Front) RoundTrip(r *http.Request) (*http.Response, error) {
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	if isRead && !strings.HasPrefix(r.URL.Path, routes.GetFile+"/") { // these mirrors copy no files
		if err := f.AwaitMirror(r.Context()); err != nil {
			return nil, err
		}
		resp, err := f.send(r, f.Mirror)
		if err != nil || resp.StatusCode != http.StatusMisdirectedRequest {
			return resp, err
		}
		_ = resp.Body.Close() // the origin answers
	}
	return f.send(r, f.Origin)
}

func (f *Front) send(r *http.Request, to string) (*http.Response, error) {
	target, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	sent := r.Clone(r.Context())
	sent.URL.Scheme, sent.URL.Host = target.Scheme, target.Host
	return f.transport.RoundTrip(sent)
}

// AwaitMirror returns once the mirror has what the origin has now.
func (f *Front) AwaitMirror(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	want, err := f.newest(ctx, f.Origin)
	if err != nil {
		return err
	}
	for {
		got, err := f.newest(ctx, f.Mirror)
		if err == nil && got >= want {
			return nil
		}
		if !sleep.For(ctx, pause) {
			return fmt.Errorf("the mirror is at %q, %v, and the origin was at %q: %w", got, err, want, ctx.Err())
		}
	}
}

// newest returns the newest position in the feed of a registry. All positions are in one
// zone.
func (f *Front) newest(ctx context.Context, of string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(of, "/")+"/api/2.5/assets?mode=_all_&descending=1&limit=1", nil)
	if err != nil {
		return "", err
	}
	resp, err := f.transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var page struct {
		Data []struct{ DateModified string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return "", err
	}
	if len(page.Data) == 0 {
		return "", nil
	}
	return page.Data[0].DateModified, nil
}
