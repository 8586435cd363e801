package site

import (
	_ "embed"
	"strings"

	"asset-registry/shared/assetfilter"
)

// textList has the texts of all pages, one in each line.
//
//go:embed texts.txt
var textList string

// texts has the texts of all pages and the names of the filters; the keys are their names. A test compares the keys
// with the names in the templates.
var texts = func() map[string]text {
	all := map[string]text{}
	for line := range strings.Lines(textList) {
		if parts := strings.Split(strings.TrimSpace(line), " | "); len(parts) == 3 {
			all[parts[0]] = text{parts[1], parts[2]}
		}
	}
	for _, f := range assetfilter.All {
		all["filter."+string(f.Name)] = text{f.Uk, f.En}
	}
	for name, l := range assetfilter.Labels {
		all["filter."+name] = text{l.Uk, l.En}
	}
	return all
}()

// nouns has the nouns that follow a number; the keys are their names.
var nouns = map[string]noun{
	"asset":  {forms{"актив", "активи", "активів"}, forms{"asset", "", "assets"}},
	"day":    {forms{"день", "дні", "днів"}, forms{"day", "", "days"}},
	"hour":   {forms{"година", "години", "годин"}, forms{"hour", "", "hours"}},
	"minute": {forms{"хвилина", "хвилини", "хвилин"}, forms{"minute", "", "minutes"}},
	"item":   {forms{"складова", "складові", "складових"}, forms{"item", "", "items"}},
	"byte":   {forms{"байт", "байти", "байтів"}, forms{"byte", "", "bytes"}},
	"edit":   {forms{"відмінність", "відмінності", "відмінностей"}, forms{"difference", "", "differences"}},
}
