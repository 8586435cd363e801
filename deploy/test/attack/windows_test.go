package attack

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"asset-registry/shared/sleep"
	"asset-registry/shared/testing/expect"
)

// certify writes a certificate for the registry, and returns the arguments that name it.
func certify(t *testing.T) []string {
	t.Helper()
	key := expect.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"registry"}}
	signed := expect.Get(x509.CreateCertificate(rand.Reader, about, about, key.Public(), key))(t)
	private := expect.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	dir := t.TempDir()
	args := []string{"--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem")}
	for path, block := range map[string]*pem.Block{
		args[1]: {Type: "CERTIFICATE", Bytes: signed}, args[3]: {Type: "PRIVATE KEY", Bytes: private},
	} {
		expect.OK(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return args
}

// shut is a client that asks for many answers on one connection and takes none of their bytes, because its window is 0.
type shut struct {
	mu     sync.Mutex // for all that is sent
	frames *http2.Framer
	paths  []string
	next   uint32 // id of the next stream
}

// ask opens one more stream. Its headers stand in one frame.
func (s *shut) ask() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var block bytes.Buffer
	headers := hpack.NewEncoder(&block)
	for _, h := range [][2]string{
		{":method", "GET"}, {":scheme", "https"}, {":authority", "registry"}, {":path", s.paths[int(s.next/2)%len(s.paths)]},
	} {
		if err := headers.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			return err
		}
	}
	s.next += 2
	return s.frames.WriteHeaders(http2.HeadersFrameParam{
		StreamID: s.next - 2, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
}

// askAgain is the time after which a client opens a stream again that has ended.
const askAgain = 5 * time.Second

// shutWindow connects as a client and opens streams. A stream that has ended is opened again, also on a new connection,
// until ctx is done.
func (r *Registry) shutWindow(ctx context.Context, client, streams int, paths []string) {
	for ctx.Err() == nil {
		plain, err := r.dialAs(ctx, client)
		if err != nil {
			continue
		}
		end := context.AfterFunc(ctx, func() { plain.Close() })
		conn := tls.Client(plain, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		s := &shut{frames: http2.NewFramer(conn, conn), paths: paths, next: 1}
		_, err = io.WriteString(conn, http2.ClientPreface)
		if err == nil {
			err = s.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		}
		for n := 0; err == nil && n < streams; n++ {
			err = s.ask()
		}
		for err == nil {
			var f http2.Frame
			f, err = s.frames.ReadFrame()
			switch f := f.(type) {
			case *http2.RSTStreamFrame:
				time.AfterFunc(askAgain, func() { _ = s.ask() }) // the connection may have ended
			case *http2.HeadersFrame:
				if f.StreamEnded() {
					time.AfterFunc(askAgain, func() { _ = s.ask() })
				}
			}
		}
		end()
		plain.Close()
	}
}

// TestShutWindowsHoldNothingOfOthers lets clients shut the windows of HTTP/2 and ask for small and large answers. From 15 s
// on, others who have no key are refused nothing, whether the clients have an address each or one together.
func TestShutWindowsHoldNothingOfOthers(t *testing.T) {
	bin, addr, plain, data := build(t), freeAddr(t), freeAddr(t), t.TempDir()
	serve := func(addr string, more ...string) member {
		return start(t, "registry", addr, filepath.Join(bin, "registry"), append([]string{"serve", "--sandbox", "--no-limits",
			"--log-level", "error", "--addr", addr, "--data", data}, more...)...)
	}
	fill, r := serve(plain), At(plain)
	expect.OK(t, r.Fill(t.Context(), 0, 8))
	expect.OK(t, fill.Stop())
	one := serve(addr, certify(t)...)
	r.addr = addr
	paths := []string{r.LargePath("2.5", 0), "/api/2.5/assets?limit=1000&opt_fields=title", "/api/2.5/assets/" + r.small, "/docs"}
	for _, c := range []struct {
		name      string
		addresses int
	}{{"40 addresses", 40}, {"one address", 1}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			peak, ended := Peak(one.ID()), make(chan struct{})
			go func() {
				defer close(ended)
				crowd(40, func(i int) { r.shutWindow(ctx, i%c.addresses, 250, paths) })
			}()
			_ = sleep.For(ctx, 15*time.Second)
			if got := r.readAnonymously(100); got["200"] != 100 {
				t.Errorf("got %v, want 100 reads answered", got)
			}
			cancel()
			<-ended
			if got := peak(); got > hardLimit {
				t.Errorf("got %d MiB of memory, want at most %d", got>>20, hardLimit>>20)
			}
		})
	}
}

// readAnonymously reads the small asset without a key, each time on a new connection. It counts the results.
func (r *Registry) readAnonymously(times int) map[string]int {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	results := map[string]int{}
	for range times {
		time.Sleep(50 * time.Millisecond)
		resp, err := client.Get("https://" + r.addr + "/api/2.5/assets/" + r.small)
		if err != nil {
			results[err.Error()]++
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || err != nil {
			results[fmt.Sprint(resp.StatusCode, " ", errorText(text), err)]++
			continue
		}
		results["200"]++
	}
	return results
}
