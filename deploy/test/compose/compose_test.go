package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/e2e"
	"asset-registry/deploy/test/rig/clients"
	"asset-registry/shared/testing/expect"
)

// TestScenariosOnCompose starts docker-compose.yml without data, and runs the end-to-end scenarios on it. In this
// test, two file services share a bucket; in TestFailures, they use a volume.
func TestScenariosOnCompose(t *testing.T) {
	// Long timeouts: the stand-in for MongoDB is slow, and so is a machine that runs the whole stack.
	s := start(t, "STORE_TIMEOUT=50s", "TIMEOUT=55s",
		"COMPOSE_PROFILES=objects", "FILES_BUCKET=s3+http://objects:7070/files")
	t.Run("containers have no more rights than they need", func(t *testing.T) { testContained(t, s) })
	t.Run("a gateway cannot reach the admin API", func(t *testing.T) { testAdminApart(t, s) })
	t.Run("pull asks no image registry for our images",
		func(t *testing.T) { s.run(t, "pull", "gateway", "assetsvc", "authsvc", "filesvc", "searchsvc") })
	t.Run("an operator creates keys", func(t *testing.T) { testKeys(t, s) })
	t.Run("scenarios", func(t *testing.T) { e2e.Run(t, s.public) })
	t.Run("the search finds their assets", func(t *testing.T) { testSearch(t, s) })
}

// TestFailures breaks every part of the stack while clients send requests. Each fault may cause only the refusals
// that docs/architecture.md, "Failures" lists, and no acknowledged write may be lost.
func TestFailures(t *testing.T) {
	s := start(t, "SANDBOX=false")
	operator, key := issueKeys(t, s)
	s.key = key
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	c := clients.New(s.public, transport, s.troubled)
	c.Key = key
	ctx, stop := context.WithCancel(t.Context())
	working := make(chan struct{})
	go func() {
		defer close(working)
		c.Run(ctx, 16, 6, time.Hour) // the stand-in for MongoDB cannot bear more requests
	}()
	defer func() {
		stop()
		<-working
	}()
	testRestarts(t, s)
	testKills(t, s)
	testCuts(t, s)
	s.awaitWork(t)
	a := s.publish(t)
	testOutages(t, s, a)
	stop()
	<-working
	t.Run("files come back from a backup after their volume was lost", func(t *testing.T) { testFilesRestore(t, s) })
	t.Run("keys come back from a backup after Redis has lost its disk",
		func(t *testing.T) { testRestore(t, s, a, operator) })
	t.Logf("\n%s", c)
	expect.Try(t, c.Err())
	if n, err := c.CheckKept(t.Context()); err != nil || n == 0 {
		t.Errorf("got %d assets and %v, want each acknowledged write", n, err)
	}
}

// testRestarts restarts and upgrades services. No request may fail.
func testRestarts(t *testing.T, s *stack) {
	for _, name := range []string{"gateway-1", "assetsvc-1", "authsvc-1", "filesvc-1"} {
		t.Run("a restart loses no request/"+name, func(t *testing.T) {
			docker(t, "restart", "--time", "25", s.container(t, name))
			s.awaitHealth(t, name)
			time.Sleep(3 * time.Second) // wait until every service has noticed that this one is back
		})
	}
	t.Run("an upgrade loses no request", func(t *testing.T) {
		before := s.run(t, "ps", "--quiet", "gateway", "assetsvc", "authsvc", "filesvc")
		s.script(t, "upgrade.sh")
		after := strings.Fields(s.run(t, "ps", "--quiet", "gateway", "assetsvc", "authsvc", "filesvc"))
		expect.Equal(t, len(after), 8, "containers after the upgrade")
		for _, id := range after {
			if strings.Contains(before, id) {
				t.Errorf("got the old container %s after the upgrade, want a new one", id)
			}
		}
	})
	t.Run("a plain start after an upgrade changes nothing", func(t *testing.T) {
		before := s.run(t, "ps", "--no-trunc", "--format", "{{.ID}}")
		s.run(t, "up", "--detach", "--no-build")
		if after := s.run(t, "ps", "--no-trunc", "--format", "{{.ID}}"); !sameWords(before, after) {
			t.Errorf("got the containers %q after a plain start, want %q", after, before)
		}
	})
}

// testKills kills each container, and restarts the stores and the load balancer. Afterwards, assets must be created
// and changed again.
func testKills(t *testing.T, s *stack) {
	for _, name := range []string{"gateway-1", "assetsvc-1", "authsvc-1", "redis-tokens", "redis-limits", "mongo-1",
		"balancer", "filesvc-1", "gateway-2", "assetsvc-2", "authsvc-2"} {
		t.Run("a killed container comes back/"+name, func(t *testing.T) {
			defer s.trouble()(aftermath)
			s.crash(t, name)
			s.awaitWork(t)
		})
	}
	for _, name := range []string{"redis-tokens", "redis-limits", "mongo-1", "balancer"} {
		t.Run("stores and load balancer restart/"+name, func(t *testing.T) {
			defer s.trouble()(aftermath)
			docker(t, "restart", "--time", "15", s.container(t, name))
			s.awaitHealth(t, name)
			s.awaitWork(t)
		})
	}
}

// testCuts disconnects one of two containers from a network. After a short time, the other container must do all
// the work.
func testCuts(t *testing.T, s *stack) {
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
}

// testOutages stops or freezes all containers of one kind. It compares the statuses of a read and of a change with
// the statuses in docs/architecture.md, "Failures".
func testOutages(t *testing.T, s *stack, a *asset) {
	for _, outage := range []struct {
		what         string
		names        []string
		frozen       bool // true: the containers are frozen; false: they are stopped
		read, change int
	}{
		{"the auth services", []string{"authsvc-1", "authsvc-2"}, true, 200, 503},
		{"Redis with the tokens", []string{"redis-tokens"}, false, 200, 503},
		{"Redis with the tokens", []string{"redis-tokens"}, true, 200, 503},
		{"Redis with the limits", []string{"redis-limits"}, true, 200, 200},
		{"the file services", []string{"filesvc-1", "filesvc-2"}, true, 200, 200},
		{"MongoDB", []string{"mongo-1"}, false, 503, 503},
		{"MongoDB", []string{"mongo-1"}, true, 503, 503},
		{"the asset services", []string{"assetsvc-1", "assetsvc-2"}, true, 503, 503},
		{"the gateways", []string{"gateway-1", "gateway-2"}, true, 503, 503},
	} {
		begin, end := "stop", "start"
		if outage.frozen {
			begin, end = "pause", "unpause"
		}
		t.Run(fmt.Sprintf("an outage has its documented answers/%s, by %s", outage.what, begin), func(t *testing.T) {
			defer s.trouble()(aftermath)
			for _, name := range outage.names {
				docker(t, begin, s.container(t, name))
			}
			if outage.frozen { // a freeze is noticed later than a stop
				time.Sleep(aftermath)
			}
			for range 3 {
				a.ask(t, "GET", outage.read)
				a.ask(t, "PATCH", outage.change)
			}
			if outage.change != http.StatusOK { // for some seconds, a gateway still accepts keys that it knows
				s.awaitRefusal(t, outage.change)
			}
			for _, name := range outage.names {
				docker(t, end, s.container(t, name))
			}
			s.awaitHealth(t, outage.names...)
			s.awaitWork(t)
		})
	}
}

// inspected holds the part of the output of "docker inspect" that testContained needs.
type inspected struct {
	Name   string
	Config struct {
		User   string
		Labels map[string]string
	}
	HostConfig struct {
		ReadonlyRootfs       bool
		Memory               int64
		CapDrop, SecurityOpt []string
		PidsLimit            int64
	}
	NetworkSettings struct {
		Networks map[string]any
		Ports    map[string][]any
	}
}

func (c inspected) service() string { return c.Config.Labels["com.docker.compose.service"] }

// testContained checks the rights, limits, networks and ports of all containers.
func testContained(t *testing.T, s *stack) {
	ids := strings.Fields(s.run(t, "ps", "--all", "--quiet"))
	var containers []inspected
	expect.OK(t, json.Unmarshal([]byte(docker(t, append([]string{"inspect"}, ids...)...)), &containers))
	published := map[string]int{}
	count := map[string]int{}
	for _, c := range containers {
		count[c.service()]++
		for _, bindings := range c.NetworkSettings.Ports {
			published[c.service()] += len(bindings)
		}
		checkRights(t, c)
	}
	for service, n := range published {
		if (service == "balancer" || service == "admin") != (n > 0) {
			t.Errorf("%s: got %d published ports, want some for balancer and admin alone", service, n)
		}
	}
	for _, service := range []string{"gateway", "assetsvc", "authsvc", "filesvc"} {
		expect.Equal(t, count[service], 2, "%s, containers", service)
	}
	testReach(t, s)
}

// checkRights checks the user, the limits and the networks of one container.
func checkRights(t *testing.T, c inspected) {
	t.Helper()
	mayBeRoot := slices.Contains([]string{"secrets", "log-key", "volumes"}, c.service())
	if c.Config.User == "" || strings.HasPrefix(c.Config.User, "0") && !mayBeRoot {
		t.Errorf("%s: got the user %q, want one that is not root", c.Name, c.Config.User)
	}
	h := c.HostConfig
	if !h.ReadonlyRootfs || h.Memory == 0 || h.PidsLimit == 0 || !slices.Contains(h.CapDrop, "ALL") ||
		!slices.Contains(h.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("%s: got %+v, want a read-only root, limits and no privileges", c.Name, h)
	}
	for network := range c.NetworkSettings.Networks {
		internal := docker(t, "network", "inspect", "--format", "{{.Internal}}", network) == "true"
		if !internal && c.service() != "balancer" && c.service() != "admin" && network != "none" {
			t.Errorf("%s: got the network %s, want internal networks alone", c.Name, network)
		}
	}
}

// testReach checks between which containers connections can be opened.
func testReach(t *testing.T, s *stack) {
	for _, c := range []struct {
		from, to string
		reaches  bool
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
		if got != fmt.Sprint(c.reaches) {
			t.Errorf("%s reaches %s: got %s, want %t", c.from, c.to, got, c.reaches)
		}
	}
}

// testAdminApart tries to connect from a gateway's network to the admin API at each address of the auth services.
// No connection may open. The test uses addresses instead of names, because an attacker in a gateway could do that,
// too.
func testAdminApart(t *testing.T, s *stack) {
	connects := func(to string) bool {
		t.Helper()
		got := docker(t, "run", "--rm", "--network", "container:"+s.container(t, "gateway-1"), "--entrypoint", "sh",
			"asset-registry-standin/redis",
			"-c", "nc -w 2 "+to+" </dev/null >/dev/null 2>&1 && echo true || echo false")
		return got == "true"
	}
	if !connects("authsvc 8082") {
		t.Error("got no connection from a gateway to the auth services, want one")
	}
	for _, name := range []string{"authsvc-1", "authsvc-2"} {
		addresses := strings.Fields(docker(t, "inspect", "--format",
			"{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", s.container(t, name)))
		if len(addresses) < 4 {
			t.Errorf("%s: got the addresses %q, want one for each network", name, addresses)
		}
		for _, address := range addresses {
			if connects(address + " 8083") {
				t.Errorf("got a connection from a gateway to the admin API of %s at %s, want none", name, address)
			}
		}
	}
}

// sameWords reports whether two texts have the same words in any order.
func sameWords(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values(strings.Fields(a))), slices.Sorted(slices.Values(strings.Fields(b))))
}
