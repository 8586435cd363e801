package releases

import (
	"os"
	"path/filepath"
	"testing"

	"asset-registry/deploy/test/rig/processes"
)

// former is the commit of the version before this one. A release sets it to the commit of the last
// release. Before the first one it is a commit that had the formats of the first one.
const former = "09ced8c"

// services are in the order in which deploy/compose/upgrade.sh replaces them.
var services = []string{"authsvc", "assetsvc", "filesvc", "searchsvc", "gateway"}

// formerPrograms builds the programs of the version before, once for all tests, and returns their folder.
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
	if err := os.MkdirAll(source, 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, source, "tar", "-xf", archive)
	dir, err := os.MkdirTemp(programs, "former")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags=nomsgpack", "-o", dir + string(filepath.Separator),
		"./deploy/registry/cmd/registry"}
	for _, service := range services {
		args = append(args, "./"+service+"/cmd/"+service)
	}
	run(t, source, "go", args...)
	*formerFlag = dir
	return dir
}

// TestOneProcessIsUpgradedAndTakenBack runs the version before, this one, and the one before again, on one
// directory of data.
func TestOneProcessIsUpgradedAndTakenBack(t *testing.T) {
	before := formerPrograms(t)
	addr, data := freeAddr(t), filepath.Join(t.TempDir(), "data")
	s := newStory(t, "http://"+addr, false)
	for _, c := range []struct{ when, bin string }{{"before", before}, {"upgraded", *bin}, {"taken back", before}} {
		output := &processes.Output{}
		p, err := processes.Standalone(t.Context(), c.bin, addr, data, output)
		if err != nil {
			t.Fatalf("%s: %v", c.when, err)
		}
		s.goOn(c.when)
		if err := p.Stop(); err != nil {
			t.Errorf("%s: got %v at the end, want exit code 0; the output is %s", c.when, err, output)
		}
		run(t, ".", filepath.Join(c.bin, "registry"), "check", "--data", data)
	}
}

// TestServicesOfTwoVersionsWorkTogether replaces one service after another by that of this version, and then by
// that of the version before, in the order of an upgrade. Each mix of versions serves.
func TestServicesOfTwoVersionsWorkTogether(t *testing.T) {
	before := formerPrograms(t)
	mix, addr, data := t.TempDir(), freeAddr(t), filepath.Join(t.TempDir(), "data")
	use := func(service, from string) {
		t.Helper()
		link := filepath.Join(mix, service)
		if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(from, service), link); err != nil {
			t.Fatal(err)
		}
	}
	s := newStory(t, "http://"+addr, true)
	serve := func(when string) {
		t.Helper()
		output := &processes.Output{}
		all, err := processes.StartSplit(t.Context(), mix, addr, data, processes.Stores{Search: true}, output)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		s.goOn(when)
		if err := all.Stop(); err != nil {
			t.Errorf("%s: got %v at the end, want exit code 0; the output is %s", when, err, output)
		}
	}
	for _, service := range services {
		use(service, before)
	}
	serve("all of the version before")
	for _, service := range services {
		use(service, *bin)
		serve(service + " is upgraded")
	}
	for _, service := range services {
		use(service, before)
		serve(service + " is taken back")
	}
}
