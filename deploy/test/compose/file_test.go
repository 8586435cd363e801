package compose

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"asset-registry/shared/testing/expect"
)

// composeFile holds the part of docker-compose.yml that these tests need.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Profiles    []string
		PullPolicy  string `yaml:"pull_policy"`
		Build       any
		Networks    []string
		Environment map[string]any
		HealthCheck map[string]any `yaml:"healthcheck"`
		Volumes     []string
		Configs     any
		Logging     struct {
			Driver  string
			Options map[string]string
		}
	}
	Networks map[string]struct {
		IPAM struct {
			Config []struct{ Subnet string }
		}
	}
}

func readFile(t *testing.T) (f composeFile) {
	t.Helper()
	text := expect.Get(os.ReadFile(filepath.Join(root, "docker-compose.yml")))(t)
	expect.OK(t, yaml.UnmarshalWithOptions(text, &f, yaml.AllowDuplicateMapKey()))
	return f
}

// ours is the beginning of the names of all images that this project builds.
const ours = "${IMAGES:-asset-registry}/"

// TestComposeNeverPullsOurImages checks each service that uses an image of this project. Compose must not pull the
// image, because the name may belong to somebody else on a public hub.
func TestComposeNeverPullsOurImages(t *testing.T) {
	images, built := map[string]int{}, map[string]bool{}
	for name, s := range readFile(t).Services {
		if !strings.HasPrefix(s.Image, ours) {
			if s.Build != nil {
				t.Errorf("%s: got the image %q, want one that begins with %q", name, s.Image, ours)
			}
			continue
		}
		images[s.Image]++
		built[s.Image] = built[s.Image] || s.Build != nil
		expect.Equal(t, s.PullPolicy, "${PULL_POLICY:-never}", "%s, the pull policy", name)
	}
	if len(images) != 5 {
		t.Errorf("got the images %v, want 5", images)
	}
	for image := range images {
		if !built[image] {
			t.Errorf("%s: got no service that builds it, want one", image)
		}
	}
}

// TestComposeBoundsEachLog checks that Docker bounds the log of each service. It bounds none by itself.
func TestComposeBoundsEachLog(t *testing.T) {
	services := readFile(t).Services
	if len(services) < 20 {
		t.Errorf("got %d services, want at least 20", len(services))
	}
	for name, s := range services {
		got, want := s.Logging.Options, map[string]string{"max-size": "10m", "max-file": "5"}
		if s.Logging.Driver != "json-file" || !maps.Equal(got, want) {
			t.Errorf("%s: got the log %s %v, want json-file %v", name, s.Logging.Driver, got, want)
		}
	}
}

// TestComposeMountsNoSingleFile checks that each mount of this repository is a folder. A mount of a file keeps the old
// one when git replaces it. So do configs of Compose.
func TestComposeMountsNoSingleFile(t *testing.T) {
	mounts := 0
	for name, s := range readFile(t).Services {
		if s.Configs != nil {
			t.Errorf("%s: got configs, want a folder", name)
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(from, "./") {
				continue
			}
			mounts++
			if info, err := os.Stat(filepath.Join(root, from)); err != nil || !info.IsDir() {
				t.Errorf("%s: got the mount %s, want one of a folder", name, volume)
			}
		}
	}
	if mounts < 10 {
		t.Errorf("got %d mounts, want 10 or more", mounts)
	}
}

func TestTheAdminAPIHasANetworkWithoutGateways(t *testing.T) {
	f := readFile(t)
	subnet := f.Networks["admin-edge"].IPAM.Config[0].Subnet
	if got, want := f.Services["authsvc"].Environment["AUTHSVC_ADMIN_ADDR"], subnet+":8083"; got != want {
		t.Errorf("got the admin API at %v, want it at %s", got, want)
	}
	if got, want := f.on("admin-edge"), []string{"admin", "authsvc"}; !slices.Equal(got, want) {
		t.Errorf("got %q on the network of the admin API, want %q", got, want)
	}
}

// The method `on` returns the services on a network, sorted by name.
func (f composeFile) on(network string) (names []string) {
	for name, s := range f.Services {
		if slices.Contains(s.Networks, network) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// The console of authsvc asks the search service for titles, at the address that the gateways have.
func TestTheSearchMeetsGatewaysAndTheConsole(t *testing.T) {
	f := readFile(t)
	if got, want := f.on("search"), []string{"authsvc", "gateway", "searchsvc"}; !slices.Equal(got, want) {
		t.Errorf("got %q on the network of the search, want %q", got, want)
	}
	if got, want := f.Services["searchsvc"].Networks, []string{"search", "telemetry"}; !slices.Equal(got, want) {
		t.Errorf("got searchsvc on the networks %q, want %q", got, want)
	}
	if got, want := f.Services["authsvc"].Environment["AUTHSVC_SEARCH_URL"], "${GATEWAY_SEARCH_URL:-}"; got != want {
		t.Errorf("got the search of the console at %v, want it at %s", got, want)
	}
}

// TestHealthyContainersAreLookedAtRarely checks that health checks are rare, because each of them starts a process.
// BenchmarkProbes measures the cost.
func TestHealthyContainersAreLookedAtRarely(t *testing.T) {
	probes := 0
	for name, s := range readFile(t).Services {
		if s.HealthCheck == nil {
			continue
		}
		probes++
		if got, want := s.HealthCheck["interval"], "${HEALTH_INTERVAL:-60s}"; got != want {
			t.Errorf("%s: got the interval %v, want %s", name, got, want)
		}
		if got, want := s.HealthCheck["start_interval"], "1s"; got != want {
			t.Errorf("%s: got the interval %v at a start, want %s", name, got, want)
		}
		if test := fmt.Sprint(s.HealthCheck["test"]); strings.Contains(test, "mongosh") {
			t.Errorf("%s: got the probe %s, want one that needs no shell of MongoDB", name, test)
		}
	}
	if probes < 15 {
		t.Errorf("got %d health checks, want 15 or more", probes)
	}
}
