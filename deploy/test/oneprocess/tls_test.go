package oneprocess

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

const host = "registry.example"

// secured is a registry that gets its certificate from an authority.
type secured struct {
	data, addr, plain, metrics string
	authority                  *authority
}

func newSecured(t *testing.T, seconds int) secured {
	t.Helper()
	s := secured{data: filepath.Join(t.TempDir(), "data"), addr: freeAddr(t), plain: freeAddr(t), metrics: freeAddr(t)}
	s.authority = newAuthority(t, s.plain, seconds)
	return s
}

func (s secured) start(t *testing.T, output *processes.Output, args ...string) *processes.Process {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	return start(t, s.addr, output, registry("registry"), append([]string{"serve", "--data", s.data, "--addr", s.addr,
		"--base-url", "https://" + host + ":" + port, "--metrics-addr", s.metrics, "--acme", "--acme-addr", s.plain,
		"--acme-directory", "https://" + s.authority.listens + "/dir", "--acme-roots", s.authority.roots,
		"--acme-contact", "olha@registry.example"}, args...)...)
}

// told returns the value of a metric, or "" if the registry does not have it.
func (s secured) told(t *testing.T, name string, labels ...string) string {
	t.Helper()
	_, text := get(t, http.DefaultClient, "http://"+s.metrics+"/metrics")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		has := true
		for _, label := range labels {
			has = has && strings.Contains(line, label)
		}
		if fields := strings.Fields(line); has {
			return fields[len(fields)-1]
		}
	}
	return ""
}

// TestTheCertificateComesFromAnAuthority starts a registry while its authority is down. The registry must report why
// it has no certificate. Then the authority runs, and the registry must get a certificate. Only the owner may access
// the files with the keys. A restart must not need the authority. A backup must have the keys only on demand.
func TestTheCertificateComesFromAnAuthority(t *testing.T) {
	s := newSecured(t, 90*24*3600)
	output := &processes.Output{}
	p := s.start(t, output)
	expect.Must(t, output.Await(t.Context(), "the certificate cannot be got or renewed"), "the authority is away")
	if failed, expires := s.told(t, "registry_tls_renewals_total", `result="failed"`),
		s.told(t, "registry_tls_expires_timestamp_seconds"); failed != "1" || expires != "0" {
		t.Errorf("the authority is away: got %q failures and the end %q, want 1 and 0", failed, expires)
	}
	expect.OK(t, output.Await(t.Context(), "answers at"))
	if said, code := run(t, registry("registry"), "status", "--data", s.data); code != 1 ||
		!strings.Contains(said, "none, of "+host) || !strings.Contains(said, "failures: 1, the last: ") {
		t.Errorf("the authority is away: got exit code %d and the status %s, want 1 and why there is no certificate", code, said)
	}
	if _, serial := clientOf(t, s.addr, nil); serial() != "" {
		t.Error("the authority is away: got a certificate, want none")
	}
	stop(t, p, output)

	s.authority.start(t)
	output = &processes.Output{}
	p = s.start(t, output)
	client, serial := clientOf(t, s.addr, s.authority.root(t))
	soon(t, "there is a certificate", func() bool { return serial() != "" })
	first := serial()
	if status, text := get(t, client, "https://"+host+"/readyz"); status != 200 {
		t.Errorf("readyz: got %d %s, want 200", status, text)
	}
	wantPlain(t, s)
	wantPrivate(t, s.data)
	wantInBackup(t, s.data, false)
	withKeys := wantInBackup(t, s.data, true)
	stop(t, p, output)

	if err := s.authority.process.Kill(); err != nil { // a restart must not need the authority
		t.Fatal(err)
	}
	output = &processes.Output{}
	p = s.start(t, output)
	if got := serial(); got != first {
		t.Errorf("after a restart: got the certificate %q, want the first, %s", got, first)
	}
	stop(t, p, output)
	s.data = filepath.Join(t.TempDir(), "restored")
	must(t, registry("registry"), "restore", "--from", withKeys, "--data", s.data)
	must(t, registry("registry"), "check", "--data", s.data)
	wantPrivate(t, s.data)
	p = s.start(t, output)
	if got := serial(); got != first {
		t.Errorf("after a restore: got the certificate %q, want the first, %s", got, first)
	}
	stop(t, p, output)
}

// TestTheCertificateIsRenewed uses an authority whose certificates are valid for 40 seconds, so that they are
// renewed after 20 seconds. Later the authority is killed, and the registry must report the failed renewal and keep
// its certificate.
func TestTheCertificateIsRenewed(t *testing.T) {
	s := newSecured(t, 40)
	s.authority.start(t)
	output := &processes.Output{}
	p := s.start(t, output)
	client, serial := clientOf(t, s.addr, s.authority.root(t))
	soon(t, "there is a certificate", func() bool { return serial() != "" })
	first := serial()
	answered := func() {
		t.Helper()
		// Send this request on the connection that was opened first.
		if status, text := get(t, client, "https://"+host+"/readyz"); status != 200 {
			t.Errorf("readyz: got %d %s, want 200", status, text)
		}
	}
	answered()
	soon(t, "there is a second certificate", func() bool { now := serial(); return now != "" && now != first })
	answered()
	second := serial()
	expect.OK(t, s.authority.process.Kill())
	soon(t, "a renewal has failed", func() bool {
		return s.told(t, "registry_tls_renewals_total", `result="failed"`) == "1"
	})
	if got := serial(); got != second {
		t.Errorf("after a failed renewal: got the certificate %q, want the one before, %s", got, second)
	}
	stop(t, p, output)
}

// wantPlain checks what the registry answers over plain HTTP. It also checks that many open connections to this
// port do no harm.
func wantPlain(t *testing.T, s secured) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	asks := func(method, path string) string {
		t.Helper()
		r := expect.Get(http.NewRequestWithContext(t.Context(), method, "http://"+s.plain+path, nil))(t)
		resp, err := client.Do(r)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Location"))
	}
	here := "https://" + host + ":" + port
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/api/2.5/assets?limit=1", "301 " + here + "/api/2.5/assets?limit=1"},
		{"GET", "/.well-known/acme-challenge/unknown", "404 "},
		{"POST", "/api/2.5/assets", "403 "},
		{"GET", "/metrics", "301 " + here + "/metrics"},
	} {
		expect.Equal(t, asks(c.method, c.path), c.want, "plain %s %s", c.method, c.path)
	}
	var held []net.Conn
	for range 800 { // more connections than are served at the same time
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.plain)
		if err != nil {
			break
		}
		held = append(held, conn)
	}
	_, serial := clientOf(t, s.addr, s.authority.root(t))
	if serial() == "" {
		t.Error("plain HTTP is flooded: got no handshake, want one")
	}
	for _, conn := range held {
		conn.Close()
	}
	soon(t, "plain HTTP is served after a flood", func() bool { return strings.HasPrefix(asks("GET", "/"), "301") })
}

// wantPrivate checks that only the owner can access the files with the keys.
func wantPrivate(t *testing.T, data string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(filepath.Join(data, "acme"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() {
			files++
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: got the mode %v, want one for the owner alone", path, info.Mode())
		}
		return err
	})
	if err != nil || files != 2 {
		t.Errorf("got %d files with keys, %v, want 2", files, err)
	}
}

// wantInBackup makes a backup, and checks whether it contains the keys of the certificate. The backup must contain
// them if the parameter `want` is true.
func wantInBackup(t *testing.T, data string, want bool) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "backup.tar")
	args := []string{"backup", "--data", data, "--to", file}
	if want {
		args = append(args, "--certificate")
	}
	must(t, registry("registry"), args...)
	r := expect.Get(os.Open(file))(t)
	defer r.Close()
	keys := 0
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		expect.OK(t, err)
		if strings.HasPrefix(header.Name, "acme/") {
			keys++
		}
	}
	if got := keys == 2; got != want || keys == 1 {
		t.Errorf("a backup, with keys %v: got %d files of keys", want, keys)
	}
	return file
}
