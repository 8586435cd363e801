package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"asset-registry/shared/testing/expect"
)

// onlySimulated has the guards of simulations that no store has. The values are the reasons.
var onlySimulated = map[string]string{
	"hasty":  "the sender of webhooks waits for the former worker of an endpoint",
	"early":  "a receiver of webhooks answers once it has the message, and no receiver is ours",
	"gappy":  "the ring of the newest changes is in the memory of a process",
	"behind": "a worker of webhooks sends the next message once the store has answered",
}

// named matches the name of a simulated guard at the end of what a guard keeps.
var named = regexp.MustCompile(`\((\w+)\)$`)

// TestEachSimulatedGuardIsLeftOutOfAStore compares the guards that the simulations leave out in their own worlds with
// the guards that stores.txt leaves out in the stores.
func TestEachSimulatedGuardIsLeftOutOfAStore(t *testing.T) {
	t.Chdir("../../..")
	guards := expect.Get(storeGuards())(t)
	var simulated []string
	for _, name := range []string{"feed", "publiclog", "webhook"} {
		found := simulatedIn(t, "assetsvc/internal/"+name)
		if len(found) == 0 {
			t.Errorf("got no guard that the simulation of %s leaves out, want some", name)
		}
		simulated = append(simulated, found...)
	}
	for _, fault := range unmatched(simulated, guards, onlySimulated) {
		t.Error(fault)
	}
	planted := guard{keeps: "a planted guard (planted)"}
	more := maps.Clone(onlySimulated)
	more["planted"] = "a reason"
	for name, faults := range map[string][]string{
		"simulated only":                  unmatched(append(simulated, "planted"), guards, onlySimulated),
		"in a store only":                 unmatched(simulated, append(guards, planted), onlySimulated),
		"with a reason, and in no world":  unmatched(simulated, guards, more),
		"with a reason, and in the store": unmatched(append(simulated, "planted"), append(guards, planted), more),
	} {
		if len(faults) != 1 {
			t.Errorf("a planted guard %s: got the faults %q, want one", name, faults)
		}
	}
}

// unmatched returns faults. A simulated guard must be in a store or in the map `only`, but not in both. A guard of
// a store must be simulated. The map `only` must have no other guard.
func unmatched(simulated []string, guards []guard, only map[string]string) (faults []string) {
	stored := map[string]bool{}
	for _, g := range guards {
		if found := named.FindStringSubmatch(g.keeps); found != nil {
			stored[found[1]] = true
		}
	}
	for _, name := range simulated {
		if stored[name] == (only[name] != "") {
			faults = append(faults, fmt.Sprintf("%s is simulated: got in a store %t, with a reason why it is in none %t; want one",
				name, stored[name], only[name] != ""))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if !slices.Contains(simulated, name) {
			faults = append(faults, fmt.Sprintf("stores.txt has the name %s: got no simulation that leaves it out, want one", name))
		}
	}
	for name := range only {
		if !slices.Contains(simulated, name) && !stored[name] {
			faults = append(faults, fmt.Sprintf("%s has a reason: got no simulation that leaves it out, want one", name))
		}
	}
	return faults
}

// simulatedIn returns the names of the constants of type guard in the tests of a package.
func simulatedIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	files := expect.Get(filepath.Glob(folder + "/*_test.go"))(t)
	for _, file := range files {
		parsed := expect.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
		for _, d := range parsed.Decls {
			group, _ := d.(*ast.GenDecl)
			if group == nil || group.Tok != token.CONST {
				continue
			}
			of, _ := group.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident)
			if of == nil || of.Name != "guard" {
				continue
			}
			for _, s := range group.Specs[1:] { // the first one is the zero guard
				names = append(names, s.(*ast.ValueSpec).Names[0].Name)
			}
		}
	}
	return names
}
