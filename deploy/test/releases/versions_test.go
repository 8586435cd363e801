package releases

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// former is the commit of the previous version. When a release is made, it is set to the commit of the previous
// release. Before the first release, it is a commit with the same file formats as the first release, which knows
// references, and compares requests byte for byte.
const former = "a309b041"

// services lists the services in the order in which deploy/compose/upgrade.sh replaces them.
var services = []string{"authsvc", "assetsvc", "filesvc", "searchsvc", "gateway"}

// formerPrograms builds the programs of the previous version, once for all tests, and returns their folder.
func formerPrograms(t *testing.T) string {
	t.Helper()
	if *formerFlag != "" {
		return *formerFlag
	}
	work := t.TempDir()
	archive := filepath.Join(work, "source.tar")
	if text, err := try(t, root, "git", "archive", "--output", archive, former); err != nil {
		t.Logf("this clone has no commit %s, so this version stands for the one before: %s", former, text)
		*formerFlag = *bin
		return *bin
	}
	source := filepath.Join(work, "source")
	expect.OK(t, os.MkdirAll(source, 0o700))
	run(t, source, "tar", "-xf", archive)
	dir, err := os.MkdirTemp(programs, "former")
	expect.OK(t, err)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags=nomsgpack", "-o", dir + string(filepath.Separator),
		"./deploy/registry/cmd/registry"}
	for _, service := range services {
		args = append(args, "./"+service+"/cmd/"+service)
	}
	run(t, source, "go", args...)
	*formerFlag = dir
	return dir
}

// TestOneProcessIsUpgradedAndTakenBack runs the previous version, then this version, and then the previous one
// again, on the same data directory. Each must show all data as it was before.
func TestOneProcessIsUpgradedAndTakenBack(t *testing.T) {
	before := formerPrograms(t)
	addr, data := freeAddr(t), filepath.Join(t.TempDir(), "data")
	s := newStory(t, "http://"+addr, false)
	for _, c := range []struct{ when, bin string }{{"before", before}, {"upgraded", *bin}, {"taken back", before}} {
		output := &processes.Output{}
		p, err := processes.Standalone(t.Context(), c.bin, addr, data, output)
		expect.Must(t, err, "%s", c.when)
		s.goOn(c.when)
		if err := p.Stop(); err != nil {
			t.Errorf("%s: got %v at the end, want exit code 0; the output is %s", c.when, err, output)
		}
		run(t, ".", filepath.Join(c.bin, "registry"), "check", "--data", data)
	}
}

// mixed is a registry whose services have different versions.
type mixed struct {
	*story
	bin, addr, data string // bin contains a link to the program of each service
	stores          processes.Stores
}

func newMixed(t *testing.T, stores processes.Stores) *mixed {
	t.Helper()
	addr := freeAddr(t)
	return &mixed{newStory(t, "http://"+addr, true), t.TempDir(), addr, filepath.Join(t.TempDir(), "data"), stores}
}

// use sets the folder of the programs for the given services. The method `serve` then starts these programs.
func (m *mixed) use(from string, services ...string) {
	m.t.Helper()
	for _, service := range services {
		link := filepath.Join(m.bin, service)
		if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
			m.t.Fatal(err)
		}
		expect.OK(m.t, os.Symlink(filepath.Join(from, service), link))
	}
}

// serve starts the services, continues the story, and stops the services.
func (m *mixed) serve(when string) {
	m.t.Helper()
	output := &processes.Output{}
	all, err := processes.StartSplit(m.t.Context(), m.bin, m.addr, m.data, m.stores, output)
	if err != nil {
		m.t.Fatalf("%s: %v; the output is %s", when, err, output)
	}
	m.goOn(when)
	if err := all.Stop(); err != nil {
		m.t.Errorf("%s: got %v at the end, want exit code 0; the output is %s", when, err, output)
	}
}

// TestServicesOfTwoVersionsWorkTogether upgrades the services from the previous version to this one, one after
// another, in the order of an upgrade. It then returns them to the previous version in the same order. The registry
// must work with each mix of versions.
func TestServicesOfTwoVersionsWorkTogether(t *testing.T) {
	before := formerPrograms(t)
	m := newMixed(t, processes.Stores{Search: true})
	m.use(before, services...)
	m.serve("all of the version before")
	for _, service := range services {
		m.use(*bin, service)
		m.serve(service + " is upgraded")
	}
	for _, service := range services {
		m.use(before, service)
		m.serve(service + " is taken back")
	}
}

// TestTwoVersionsShareMongoDBAndRedis runs two asset services on one database, and replaces them one after the
// other. So both versions write into the same database at the same time, during the upgrade and on the way back.
func TestTwoVersionsShareMongoDBAndRedis(t *testing.T) {
	before := formerPrograms(t)
	mongo, redis := mongotest.Start(t), redistest.Start(t)
	m := newMixed(t, processes.Stores{
		Assets: mongo.URI(t, fmt.Sprintf("versions%016x", randtest.Uint64())), Tokens: redis.URL(), Search: true, AssetServices: 2,
	})
	for _, c := range []struct{ when, first, second string }{
		{"all of the version before", before, before},
		{"authsvc and one assetsvc are upgraded", *bin, before},
		{"all are upgraded", *bin, *bin},
		{"authsvc and one assetsvc are taken back", before, *bin},
		{"all are taken back", before, before},
	} {
		m.use(c.first, "authsvc", "assetsvc")
		m.use(c.second, "filesvc", "searchsvc", "gateway")
		m.stores.Beside = c.second
		m.serve(c.when)
	}
}
