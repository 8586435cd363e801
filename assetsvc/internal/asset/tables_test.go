package asset

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

func TestTheRulesKnowNeitherHTTPNorStorage(t *testing.T) {
	out := expect.Get(exec.Command("go", "list", "-deps", ".", "../record").Output())(t)
	for dependency := range strings.SplitSeq(string(out), "\n") {
		for _, refused := range []string{"net/http", "gin-gonic", "mongo", "redis", "bbolt", "opentelemetry"} {
			if strings.Contains(dependency, refused) {
				t.Errorf("got dependency %s, want none on %s", dependency, refused)
			}
		}
	}
}

// eachModel calls the function f for every model of the field table, with the path of the model.
func eachModel(path string, m *model, f func(path string, m *model)) {
	f(path, m)
	for _, row := range m.fields {
		if below := modelOf(row.of); below != nil {
			eachModel(path+"."+row.name, below, f)
		}
	}
}

func TestFieldsStartInAVersionThatExists(t *testing.T) {
	check := func(path string, m *model) {
		for _, f := range m.fields {
			if f.since != "" && !slices.Contains(routes.Targets(), string(f.since)) {
				t.Errorf("%s.%s: got since %q, want one of %q", path, f.name, f.since, routes.Targets())
			}
		}
	}
	eachModel("asset", assetModel, check)
	eachModel("access", accessModel, check)
}

func TestFieldsHaveAKindAndANameOfTheirOwn(t *testing.T) {
	eachModel("asset", assetModel, func(path string, m *model) {
		seen := map[string]bool{}
		for _, f := range m.fields {
			if k, is := f.of.(plain); is && k.take == nil {
				t.Errorf("%s.%s: got a kind that kindsOf lacks, want one of it", path, f.name)
			}
			if isIndex(f.name) || seen[f.name] {
				t.Errorf("%s.%s: got a number or a name that comes twice, want a unique name", path, f.name)
			}
			seen[f.name] = true
		}
	})
}

func TestFieldsBelowTheAssetHaveNoWriters(t *testing.T) {
	eachModel("asset", assetModel, func(path string, m *model) {
		for _, f := range m.fields {
			if m != assetModel && f.writers != 0 {
				t.Errorf("%s.%s: got writers, want none: the asset's field has them", path, f.name)
			}
		}
	})
}

func TestStepsLeadToStatesThatExist(t *testing.T) {
	for from, s := range states {
		for to, by := range s.to {
			if !slices.Contains(Statuses, from) || !slices.Contains(Statuses, to) || len(by) == 0 {
				t.Errorf("got a step from %s to %s for %v, want states of %v and a role", from, to, by, Statuses)
			}
			for _, role := range by {
				if !from.mayChange(role) {
					t.Errorf("got a step from %s to %s for %s, want only roles that may change the asset", from, to,
						role)
				}
			}
		}
	}
}

func TestPartsNameFieldsThatExist(t *testing.T) {
	has := func(m *model, name string) bool {
		return slices.ContainsFunc(m.fields, func(f field) bool { return f.name == name })
	}
	for _, p := range parts {
		if !has(assetModel, p.field) || p.check == nil || p.checked == "" {
			t.Errorf("%s: got field %q, check of %q; want a field of the asset and a check", p.Path, p.field, p.checked)
		}
		for _, name := range slices.Concat(p.given, p.fixed, p.renewed) {
			expect.ErrorIf(t, !has(p.model, name), "%s: got field %q, want a field of the part", p.Path, name)
		}
		for _, row := range assetModel.fields {
			if row.name == p.field && modelOf(row.of) != p.model {
				t.Errorf("%s: got another model, want the model of the asset's field %s", p.Path, p.field)
			}
		}
	}
}
