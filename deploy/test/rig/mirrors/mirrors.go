// Package mirrors runs mirrors of a registry for tests. It also has a front, which sends reads to a mirror and all
// other requests to the registry.
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

// Start starts a mirror of a registry or of another mirror, without rate limits. When Start returns, the mirror
// serves at addr. The parameter `bin` is the directory of the programs.
func Start(ctx context.Context, bin, addr, of, dir string, output *processes.Output, args ...string) (
	*processes.Process, error,
) {
	args = append([]string{"mirror", "--no-limits", "--of", of, "--addr", addr, "--data", dir}, args...)
	return processes.Start(ctx, addr, output, filepath.Join(bin, "registry"), args...)
}

const (
	within = 20 * time.Second // how long the mirror may take to catch up
	pause  = 5 * time.Millisecond
)

// Front is an http.Handler in front of a registry and its mirror. When a read comes, Front waits until Mirror has
// every change that Origin has at that moment, and then sends the read to Mirror. All other requests go to Origin.
// If the mirror answers 421, the read goes to Origin, too.
type Front struct {
	Origin, Mirror string // addresses, without a slash at the end
	transport      *http.Transport
	proxy          *httputil.ReverseProxy
}

// NewFront returns a Front for a registry at origin and its mirror.
func NewFront(origin, mirror string) *Front {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression, transport.MaxIdleConnsPerHost = true, 100
	f := &Front{Origin: origin, Mirror: mirror, transport: transport}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery // as the client sent them
		},
		Transport:     f,
		FlushInterval: -1, // send each part of an answer immediately
	}
	return f
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.proxy.ServeHTTP(w, r) }

func (f *Front) RoundTrip(r *http.Request) (*http.Response, error) {
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	if isRead && !strings.HasPrefix(r.URL.Path, routes.GetFile+"/") { // these mirrors do not copy files
		if err := f.AwaitMirror(r.Context()); err != nil {
			return nil, err
		}
		resp, err := f.send(r, f.Mirror)
		if err != nil || resp.StatusCode != http.StatusMisdirectedRequest {
			return resp, err
		}
		_ = resp.Body.Close() // the mirror refuses this read, so the origin must answer
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

// AwaitMirror returns when the mirror has every change that the origin has now. It fails after 20 s.
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

// newest returns the newest position in the feed of a registry. All positions are in the same time zone, so they
// can be compared as text.
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
