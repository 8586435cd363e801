package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/e2e"
	"asset-registry/deploy/test/rig/clients"
)

// TestPromises runs the scenarios against docker-compose.yml, started from
// nothing.
func TestPromises(t *testing.T) {
	// The stand-in for MongoDB scans all assets for each operation.
	s := start(t, "STORE_TIMEOUT=50s", "TIMEOUT=55s")
	t.Run("containers may do only what they must", func(t *testing.T) { testContained(t, s) })
	t.Run("a gateway has no way to the admin API", func(t *testing.T) { testAdminApart(t, s) })
	t.Run("pull asks no registry for our images",
		func(t *testing.T) { s.run(t, "pull", "gateway", "assetsvc", "authsvc") })
	t.Run("an operator makes keys", func(t *testing.T) { testKeys(t, s) })
	t.Run("scenarios", func(t *testing.T) { e2e.Run(t, s.public) })
}

// TestFailures breaks all of it under load.
func TestFailures(t *testing.T) {
	s := start(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	c := clients.New(s.public, transport, s.troubled)
	ctx, stop := context.WithCancel(t.Context())
	working := make(chan struct{})
	go func() {
		defer close(working)
		c.Run(ctx, 16, 12, time.Hour) // as much as the stand-in for MongoDB bears
	}()
	defer func() {
		stop()
		<-working
	}()
	for _, name := range []string{"gateway-1", "assetsvc-1", "authsvc-1"} {
		t.Run("a restart loses nothing/"+name, func(t *testing.T) {
			docker(t, "restart", "--time", "25", s.container(t, name))
			s.awaitHealth(t, name)
			time.Sleep(3 * time.Second) // all see that it is back
		})
	}
	t.Run("an upgrade loses nothing", func(t *testing.T) {
		before := s.run(t, "ps", "--quiet", "gateway", "assetsvc", "authsvc")
		s.script(t, "upgrade.sh")
		after := strings.Fields(s.run(t, "ps", "--quiet", "gateway", "assetsvc", "authsvc"))
		if len(after) != 6 {
			t.Errorf("there are %d services", len(after))
		}
		for _, id := range after {
			if strings.Contains(before, id) {
				t.Errorf("%s is one from before", id)
			}
		}
	})
	for _, name := range []string{"gateway-1", "assetsvc-1", "authsvc-1", "redis-tokens", "redis-limits", "mongo-1",
		"balancer", "gateway-2", "assetsvc-2", "authsvc-2"} {
		t.Run("who is killed comes back/"+name, func(t *testing.T) {
			defer s.trouble()(aftermath)
			s.crash(t, name)
			s.awaitWork(t)
		})
	}
	for _, name := range []string{"redis-tokens", "redis-limits", "mongo-1", "balancer"} {
		t.Run("stores and balancer are restarted/"+name, func(t *testing.T) {
			defer s.trouble()(aftermath)
			docker(t, "restart", "--time", "15", s.container(t, name))
			s.awaitHealth(t, name)
			s.awaitWork(t)
		})
	}
	for _, link := range []struct{ name, network string }{
		{"gateway-1", "services"},
		{"gateway-2", "edge"},
		{"gateway-2", "limits-store"},
		{"assetsvc-1", "services"},
		{"assetsvc-2", "assets-store"},
		{"authsvc-1", "services"},
		{"authsvc-2", "tokens-store"},
	} {
		t.Run("one is cut off and the other goes on/"+link.name+" from "+link.network, func(t *testing.T) {
			over := s.trouble()
			mend := s.cut(t, link.name, link.network)
			time.Sleep(aftermath)
			over(0)
			time.Sleep(3 * time.Second)
			defer s.trouble()(aftermath)
			mend()
			s.awaitHealth(t, link.name)
		})
	}
	a := s.publish(t)
	for _, outage := range []struct {
		what         string
		names        []string
		frozen       bool // or stopped
		read, change int
	}{
		{"the auth services", []string{"authsvc-1", "authsvc-2"}, true, 200, 503},
		{"Redis with the tokens", []string{"redis-tokens"}, false, 200, 503},
		{"Redis with the tokens", []string{"redis-tokens"}, true, 200, 503},
		{"Redis with the limits", []string{"redis-limits"}, true, 200, 200},
		{"MongoDB", []string{"mongo-1"}, false, 503, 503},
		{"MongoDB", []string{"mongo-1"}, true, 503, 503},
		{"the asset services", []string{"assetsvc-1", "assetsvc-2"}, true, 503, 503},
		{"the gateways", []string{"gateway-1", "gateway-2"}, true, 503, 503},
	} {
		begin, end := "stop", "start"
		if outage.frozen {
			begin, end = "pause", "unpause"
		}
		t.Run(fmt.Sprintf("what fails is told/%s, by %s", outage.what, begin), func(t *testing.T) {
			defer s.trouble()(aftermath)
			for _, name := range outage.names {
				docker(t, begin, s.container(t, name))
			}
			if outage.frozen { // which takes longer to notice
				time.Sleep(aftermath)
			}
			for range 3 {
				a.ask(t, "GET", outage.read)
				a.ask(t, "PATCH", outage.change)
			}
			for _, name := range outage.names {
				docker(t, end, s.container(t, name))
			}
			s.awaitHealth(t, outage.names...)
			s.awaitWork(t)
		})
	}
	t.Run("Redis with the tokens loses its disk, and is restored", func(t *testing.T) { testRestore(t, s, a) })
	stop()
	<-working
	t.Logf("\n%s", c)
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	if n, err := c.CheckKept(t.Context()); err != nil || n == 0 {
		t.Errorf("of %d assets, these are not as acknowledged: %v", n, err)
	}
}

// testContained looks at what the engine has been told.
func testContained(t *testing.T, s *stack) {
	ids := strings.Fields(s.run(t, "ps", "--all", "--quiet"))
	var containers []struct {
		Name   string
		Config struct {
			User   string
			Labels map[string]string
		}
		HostConfig struct {
			ReadonlyRootfs bool
			Memory         int64
			CapDrop        []string
			SecurityOpt    []string
			PidsLimit      int64
		}
		NetworkSettings struct {
			Networks map[string]any
			Ports    map[string][]any
		}
	}
	if err := json.Unmarshal([]byte(docker(t, append([]string{"inspect"}, ids...)...)), &containers); err != nil {
		t.Fatal(err)
	}
	published := map[string]int{}
	count := map[string]int{}
	for _, c := range containers {
		service := c.Config.Labels["com.docker.compose.service"]
		count[service]++
		if c.Config.User == "" || strings.HasPrefix(c.Config.User, "0") && service != "secrets" {
			t.Errorf("%s runs as %q", c.Name, c.Config.User)
		}
		h := c.HostConfig
		if !h.ReadonlyRootfs || h.Memory == 0 || h.PidsLimit == 0 || !slices.Contains(h.CapDrop, "ALL") ||
			!slices.Contains(h.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s may do more than it must: %+v", c.Name, h)
		}
		for _, bindings := range c.NetworkSettings.Ports {
			published[service] += len(bindings)
		}
		for network := range c.NetworkSettings.Networks {
			internal := docker(t, "network", "inspect", "--format", "{{.Internal}}", network) == "true"
			if !internal && service != "balancer" && service != "admin" && network != "none" {
				t.Errorf("%s is on %s, which has a way out", c.Name, network)
			}
		}
	}
	for service, n := range published {
		if (service == "balancer" || service == "admin") != (n > 0) {
			t.Errorf("%s publishes %d ports", service, n)
		}
	}
	for _, service := range []string{"gateway", "assetsvc", "authsvc"} {
		if count[service] != 2 {
			t.Errorf("there are %d of %s", count[service], service)
		}
	}
	for _, c := range []struct {
		from, to string
		may      bool
	}{
		{"balancer", "gateway 8080", true},
		{"balancer", "mongo-1 27017", false},
		{"balancer", "redis-tokens 6379", false},
		{"balancer", "authsvc 8083", false},
		{"admin", "authsvc 8083", true},
		{"admin", "redis-tokens 6379", false},
		{"admin", "gateway 8080", false},
		{"redis-limits", "redis-tokens 6379", false},
		{"mongo-1", "mongo-2 27017", true},
		{"mongo-1", "redis-tokens 6379", false},
	} {
		got := docker(t, "exec", s.container(t, c.from), "sh", "-c",
			"nc -w 2 "+c.to+" </dev/null >/dev/null 2>&1 && echo true || echo false")
		if got != fmt.Sprint(c.may) {
			t.Errorf("that %s reaches %s is %s", c.from, c.to, got)
		}
	}
}

// testAdminApart connects from where a gateway is, at each address of the auth
// services, since one that is taken over need not ask by a name.
func testAdminApart(t *testing.T, s *stack) {
	connects := func(to string) bool {
		t.Helper()
		got := docker(t, "run", "--rm", "--network", "container:"+s.container(t, "gateway-1"), "--entrypoint", "sh",
			"asset-registry-standin/redis",
			"-c", "nc -w 2 "+to+" </dev/null >/dev/null 2>&1 && echo true || echo false")
		return got == "true"
	}
	if !connects("authsvc 8082") {
		t.Error("a gateway does not reach the auth services")
	}
	for _, name := range []string{"authsvc-1", "authsvc-2"} {
		addresses := strings.Fields(docker(t, "inspect", "--format",
			"{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", s.container(t, name)))
		if len(addresses) < 4 {
			t.Errorf("%s has the addresses %q, want one for each network", name, addresses)
		}
		for _, address := range addresses {
			if connects(address + " 8083") {
				t.Errorf("a gateway reaches the admin API of %s at %s", name, address)
			}
		}
	}
}

// testKeys does what the README tells of the first hour of an operator.
func testKeys(t *testing.T, s *stack) {
	operator := s.run(t, "exec", "--no-TTY", "authsvc", "/service", "admin-key", "--name", "Olha")
	admin := func(path, data string) map[string]any {
		return ask(t, "POST", s.admin+"/admin/v1"+path, operator, "", data, 201)
	}
	admin("/brokers", `{"data":{"name":"acme","title":"Acme"}}`)
	issued := admin("/keys", `{"data":{"broker":"acme","name":"first","role":"broker","levels":"13"}}`)
	key, _ := issued["secret"].(string)
	me := ask(t, "GET", s.public+"/api/2.5/me", key, "", "", 200)
	if text := fmt.Sprint(me); !strings.Contains(text, "acme") {
		t.Errorf("the broker is told to be %s", text)
	}
	ask(t, "GET", s.public+"/admin/v1/keys", operator, "", "", 404)
	log, _ := ask(t, "GET", s.admin+"/admin/v1/audit", operator, "", "", 200)["data"].([]any)
	last, _ := log[len(log)-1].(map[string]any)
	if from, err := netip.ParseAddr(fmt.Sprint(last["from"])); err != nil ||
		netip.MustParsePrefix(balancers).Contains(from) {
		t.Errorf("the audit log has an entry that came from %v, and not its client's address", last["from"])
	}
}

// testRestore takes all that Redis has kept away: owners notice nothing, since
// assets keep the records of their tokens, and keys come back from a backup.
func testRestore(t *testing.T, s *stack, a *asset) {
	operator := s.run(t, "exec", "--no-TTY", "authsvc", "/service", "admin-key", "--name", "Olha")
	brokers := s.admin + "/admin/v1/brokers"
	ask(t, "GET", brokers, operator, "", "", 200)
	backup := filepath.Join(t.TempDir(), "backup")
	s.script(t, "backup.sh", backup, "secrets", "tokens")
	s.script(t, "backup.sh", backup, "secrets", "tokens") // which may be repeated
	for _, name := range []string{"secrets.tar", "tokens.rdb"} {
		if info, err := os.Stat(filepath.Join(backup, name)); err != nil || info.Mode().Perm() != 0o600 ||
			info.Size() == 0 {
			t.Errorf("%s is %v, %v, want a file of mode 0600", name, info, err)
		}
	}
	defer s.trouble()(aftermath)
	s.run(t, "rm", "--force", "--stop", "redis-tokens")
	docker(t, "volume", "rm", s.project+"_redis-tokens")
	s.run(t, "up", "--detach", "--no-build", "--no-deps", "--wait", "redis-tokens")
	s.awaitWork(t)
	a.ask(t, "PATCH", 200)
	awaitStatus(t, brokers, operator, 401)
	broken := filepath.Join(backup, "broken.rdb")
	if err := os.WriteFile(broken, []byte("REDIS0011 and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.command("restore-tokens.sh", broken).Run(); err == nil {
		t.Error("a file that is no good was restored")
	}
	s.script(t, "restore-tokens.sh", filepath.Join(backup, "tokens.rdb"))
	s.awaitWork(t)
	a.ask(t, "PATCH", 200)
	awaitStatus(t, brokers, operator, 200)
	s.crash(t, "redis-tokens") // what was restored is on the disk
	awaitStatus(t, brokers, operator, 200)
}

// awaitStatus waits until a reading is answered so.
func awaitStatus(t *testing.T, url, key string, want int) {
	t.Helper()
	await(t, fmt.Sprintf("%s is answered %d", url, want), func() bool {
		status, _, _, err := send("GET", url, key, "", "")
		return err == nil && status == want
	})
}

// asset is one that is changed again and again.
type asset struct {
	url, token string
	changes    int
}

func (s *stack) publish(t *testing.T) *asset {
	t.Helper()
	made := ask(t, "POST", s.public+"/api/2.5/assets", "broker", "", clients.Creation, 201)
	data, _ := made["data"].(map[string]any)
	access, _ := made["access"].(map[string]any)
	return &asset{url: fmt.Sprint(s.public, "/api/2.5/assets/", data["id"]), token: fmt.Sprint(access["token"])}
}

func (a *asset) ask(t *testing.T, method string, status int) {
	t.Helper()
	body := ""
	if method == "PATCH" {
		a.changes++
		body = fmt.Sprintf(`{"data":{"title":"%d"}}`, a.changes)
	}
	ask(t, method, a.url, "broker", a.token, body, status)
}

// ask sends a request, checks how it is answered, and returns the JSON.
func ask(t *testing.T, method, url, key, token, body string, want int) map[string]any {
	t.Helper()
	status, header, text, err := send(method, url, key, token, body)
	if err != nil || status != want {
		t.Fatalf("%s %s: answered %d %s, %v, want %d", method, url, status, text, err, want)
	}
	if status == http.StatusServiceUnavailable && header.Get("Retry-After") == "" {
		t.Errorf("%s %s: refused without Retry-After", method, url)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil || header.Get("Content-Type") != "application/json" ||
		header.Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("%s %s: answered with %v %s", method, url, header, text)
	}
	if status >= 400 && (got["status"] != "error" || got["errors"] == nil) {
		t.Errorf("%s %s: no error body: %s", method, url, text)
	}
	return got
}

// send sends a request on a connection of its own.
func send(method, url, key, token, body string) (status int, header http.Header, text []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // longer than any deadline
	defer cancel()
	return clients.Send(ctx, &http.Transport{DisableKeepAlives: true},
		clients.Call{Method: method, URL: url, Key: key, Token: token, Body: body})
}

// awaitWork waits until assets are made and changed again.
func (s *stack) awaitWork(t *testing.T) {
	t.Helper()
	await(t, "changes are made again", func() bool {
		status, _, text, err := send("POST", s.public+"/api/2.5/assets", "broker", "", clients.Creation)
		if err != nil || status != http.StatusCreated {
			return false
		}
		var made struct {
			Access struct{ Token string }
			Data   struct{ ID string }
		}
		if err := json.Unmarshal(text, &made); err != nil {
			t.Fatalf("a creation was answered with %s", text)
		}
		status, _, _, err = send("PATCH", s.public+"/api/2.5/assets/"+made.Data.ID, "broker", made.Access.Token,
			`{"data":{"title":"y"}}`)
		return err == nil && status == http.StatusOK
	})
}
