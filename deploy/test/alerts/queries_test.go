package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// query is an expression in a rule or a dashboard.
type query struct {
	where string // describes the place of the expression, for people
	expr  parser.Expr
	shown []string // labels that the texts next to the expression show
}

// rule is a rule as Prometheus reads it.
type rule struct {
	Record, Alert string
	Expr          string
	Labels        map[string]string
	Annotations   map[string]string
}

// rules returns all rules of Prometheus.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	for _, path := range files(t, "../../observability/rules/*.yaml") {
		var file struct{ Groups []struct{ Rules []rule } }
		read(t, path, func(text []byte) error { return yaml.Unmarshal(text, &file) })
		for _, g := range file.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

// dashboard holds the parts of a dashboard that the tests check.
type dashboard struct {
	path       string
	UID, Title string
	Tags       []string
	Links      []link
	Templating struct{ List []variable }
	Panels     []panel
}

type link struct{ Title, URL string }

type variable struct {
	Name, Type string
	Query      any // a text, or {"query": text} for a query variable
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Links       []link
	Datasource  struct{ UID string }
	Targets     []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ UID string }
	}
}

func dashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	for _, path := range files(t, "../../observability/grafana/dashboards/*.json") {
		d := dashboard{path: filepath.Base(path)}
		read(t, path, func(text []byte) error { return json.Unmarshal(text, &d) })
		all = append(all, d)
	}
	return all
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	return found
}

func read(t *testing.T, path string, decode func([]byte) error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = decode(text)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

var (
	duration  = regexp.MustCompile(`\$__(rate_)?interval`)
	variables = regexp.MustCompile(`\$\{?(\w+)\}?`)
	legend    = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
	template  = regexp.MustCompile(`\$labels\.(\w+)`)
	values    = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
)

// parse parses an expression. It replaces variables of a dashboard by a pattern that matches everything.
func parse(t *testing.T, where, text string) parser.Expr {
	t.Helper()
	text = variables.ReplaceAllString(duration.ReplaceAllString(text, "5m"), ".*")
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	return expr
}

func names(pattern *regexp.Regexp, text string) (found []string) {
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// queries returns all expressions in rules and dashboards.
func queries(t *testing.T) (all []query) {
	t.Helper()
	for _, r := range rules(t) {
		where := "rule " + r.Record + r.Alert
		shown := names(template, r.Annotations["summary"]+r.Annotations["description"])
		all = append(all, query{where, parse(t, where, r.Expr), shown})
	}
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				where := d.path + ", " + p.Title + ", " + target.RefID
				all = append(all, query{where, parse(t, where, target.Expr), names(legend, target.LegendFormat)})
			}
		}
		for _, v := range d.Templating.List {
			if v.Type != "query" {
				continue
			}
			text, _ := v.Query.(map[string]any)["query"].(string)
			where, match := d.path+", variable "+v.Name, values.FindStringSubmatch(text)
			if match == nil {
				t.Fatalf("%s: %q is no label_values", where, text)
			}
			all = append(all, query{where, parse(t, where, match[1]), match[2:]})
		}
	}
	return all
}

// series are the time series that processes export or rules compute.
type series []labels.Labels

// selected returns the series that a selector matches.
func (s series) selected(v *parser.VectorSelector) (found series) {
next:
	for _, l := range s {
		for _, m := range v.LabelMatchers {
			if !m.Matches(l.Get(m.Name)) {
				continue next
			}
		}
		found = append(found, l)
	}
	return found
}

// faults returns the faults of a query. A selector must match some series. A label that the query groups by,
// matches on or shows must be a label of some selected series.
func (s series) faults(q query) []string {
	look := &look{series: s, where: q.where}
	look.need("shows", q.shown, look.labels(q.expr))
	return look.faults
}

// look is the check of one query.
type look struct {
	series
	where  string
	faults []string
}

func (k *look) need(what string, wanted, there []string) {
	for _, name := range wanted {
		if !slices.Contains(there, name) {
			k.faults = append(k.faults, k.where+": no series has the label "+name+", which it "+what)
		}
	}
}

// labels returns the labels that the result of an expression has. It records the faults that it finds.
func (k *look) labels(e parser.Expr) (has []string) {
	switch e := e.(type) {
	case *parser.VectorSelector:
		found := k.selected(e)
		if len(found) == 0 {
			k.faults = append(k.faults, k.where+": nothing is told of "+e.String())
		}
		for _, l := range found {
			l.Range(func(l labels.Label) { has = append(has, l.Name) })
		}
	case *parser.MatrixSelector:
		return k.labels(e.VectorSelector)
	case *parser.ParenExpr:
		return k.labels(e.Expr)
	case *parser.UnaryExpr:
		return k.labels(e.Expr)
	case *parser.SubqueryExpr:
		return k.labels(e.Expr)
	case *parser.AggregateExpr:
		inner := k.labels(e.Expr)
		if e.Without {
			return slices.DeleteFunc(inner, func(name string) bool { return slices.Contains(e.Grouping, name) })
		}
		k.need("groups by", e.Grouping, inner)
		return e.Grouping
	case *parser.BinaryExpr:
		left, right := k.labels(e.LHS), k.labels(e.RHS)
		if e.VectorMatching != nil {
			k.need("matches on", e.VectorMatching.MatchingLabels, left)
		}
		if e.LHS.Type() != parser.ValueTypeVector || e.Op == parser.LOR {
			return slices.Concat(left, right)
		}
		return left
	case *parser.Call:
		for _, arg := range e.Args {
			has = append(has, k.labels(arg)...)
		}
		if e.Func.Name == "label_replace" {
			has = append(has, e.Args[1].(*parser.StringLiteral).Val)
		}
	}
	return has
}

// recorded returns the series, together with the series that rules compute from them.
func (s series) recorded(t *testing.T) series {
	t.Helper()
	told := s
	for _, r := range rules(t) {
		if r.Record == "" {
			continue
		}
		made := map[string]string{}
		for _, name := range (&look{series: told}).labels(parse(t, r.Record, r.Expr)) {
			made[name] = "some"
		}
		made["__name__"] = r.Record
		told = append(told, labels.FromMap(made))
	}
	return told
}
