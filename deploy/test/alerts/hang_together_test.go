package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

const (
	runbook     = "docs/runbook.md"
	served      = "/public/" + runbook // path at which Grafana serves the runbook
	runbookFile = "../../../" + runbook
)

// headings returns the runbook's headings for alerts, as anchors.
func headings(t *testing.T) (anchors []string) {
	t.Helper()
	text, err := os.ReadFile(runbookFile)
	if err != nil {
		t.Fatal(err)
	}
	_, alerts, found := strings.Cut(string(text), "\n## Alerts\n")
	if !found {
		t.Fatalf("%s has no section of alerts", runbook)
	}
	alerts, _, _ = strings.Cut(alerts, "\n## ")
	for _, match := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(alerts, -1) {
		anchors = append(anchors, strings.ToLower(match[1]))
	}
	return anchors
}

func TestEveryAlertSaysHowBadItIsAndWhatToDo(t *testing.T) {
	anchors, seen := headings(t), map[string]bool{}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		anchor := strings.ToLower(r.Alert)
		if seen[anchor] {
			t.Errorf("there are two alerts %s", r.Alert)
		}
		seen[anchor] = true
		if severity := r.Labels["severity"]; severity != "page" && severity != "ticket" {
			t.Errorf("%s has severity %q", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s does not say what is wrong", r.Alert)
		}
		if got, want := r.Annotations["runbook_url"], "{{ $externalLabels.runbooks }}#"+anchor; got != want {
			t.Errorf("%s has the runbook %q, not %s", r.Alert, got, want)
		}
		if !slices.Contains(anchors, anchor) {
			t.Errorf("%s has no heading %s", runbook, r.Alert)
		}
	}
	for _, anchor := range anchors {
		if !seen[anchor] {
			t.Errorf("%s has a heading %s that is no alert's", runbook, anchor)
		}
	}
}

// TestRulesKnowEveryService checks rules that select services by name. Each must select every service that
// Prometheus scrapes.
func TestRulesKnowEveryService(t *testing.T) {
	services := slices.DeleteFunc(jobs(t), func(job string) bool { return job == "otelcol" || job == "prometheus" })
	for _, r := range rules(t) {
		var named []*labels.Matcher
		parser.Inspect(parse(t, r.Alert, r.Expr), func(node parser.Node, _ []parser.Node) error {
			if selector, is := node.(*parser.VectorSelector); is {
				for _, m := range selector.LabelMatchers {
					if m.Name == "job" {
						named = append(named, m)
					}
				}
			}
			return nil
		})
		if len(named) == 0 {
			continue
		}
		for _, service := range services {
			if !slices.ContainsFunc(named, func(m *labels.Matcher) bool { return m.Matches(service) }) {
				t.Errorf("%s%s: got no job %s, want every service", r.Alert, r.Record, service)
			}
		}
	}
}

func TestEveryAlertIsTestedBothWays(t *testing.T) {
	told, untold := map[string]bool{}, map[string]bool{}
	for _, path := range files(t, "tests/*.yaml") {
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					Alertname string
					ExpAlerts []any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		read(t, path, func(text []byte) error { return yaml.Unmarshal(text, &file) })
		for _, test := range file.Tests {
			for _, a := range test.AlertRuleTest {
				if len(a.ExpAlerts) > 0 {
					told[a.Alertname] = true
				} else {
					untold[a.Alertname] = true
				}
			}
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" && (!told[r.Alert] || !untold[r.Alert]) {
			t.Errorf("%s: tested when it is told: %v, and when not: %v", r.Alert, told[r.Alert], untold[r.Alert])
		}
	}
}

func TestDashboardsAreWhole(t *testing.T) {
	uids, anchors, linked := map[string]bool{}, headings(t), map[string]bool{}
	for _, d := range dashboards(t) {
		if want := "registry-" + strings.TrimSuffix(d.path, ".json"); d.UID != want || uids[d.UID] {
			t.Errorf("%s has the uid %q, not %s", d.path, d.UID, want)
		}
		uids[d.UID] = true
		if !slices.Contains(d.Tags, "registry") {
			t.Errorf("%s lacks the tag by which the dashboards find each other", d.path)
		}
		if !slices.ContainsFunc(d.Links, func(l link) bool { return l.URL == served }) {
			t.Errorf("%s does not lead to the runbook", d.path)
		}
		declared := []string{"__rate_interval"}
		for _, v := range d.Templating.List {
			declared = append(declared, v.Name)
		}
		if !slices.Contains(declared, "datasource") {
			t.Errorf("%s has no variable datasource", d.path)
		}
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s has two panels %d", d.path, p.ID)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %s lies over %q or the edge", d.path, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			for _, l := range p.Links {
				anchor, ok := strings.CutPrefix(l.URL, served+"#")
				if !ok || !slices.Contains(anchors, anchor) {
					t.Errorf("%s, %s leads to %s, which is nowhere", d.path, p.Title, l.URL)
				}
				linked[anchor] = true
			}
			if p.Type != "row" && p.Datasource.UID != "${datasource}" {
				t.Errorf("%s, %s asks %q", d.path, p.Title, p.Datasource.UID)
			}
			for _, target := range p.Targets {
				if target.Datasource.UID != "${datasource}" {
					t.Errorf("%s, %s, %s asks %q", d.path, p.Title, target.RefID, target.Datasource.UID)
				}
				for _, name := range names(variables, target.Expr) {
					if !slices.Contains(declared, name) {
						t.Errorf("%s, %s: there is no variable %s", d.path, p.Title, name)
					}
				}
			}
		}
	}
	for _, anchor := range anchors {
		if !linked[anchor] {
			t.Errorf("no panel shows what %s is about", anchor)
		}
	}
}
