package httpapi

import (
	"errors"
	"maps"
	"slices"
	"time"

	"asset-registry/gateway/internal/catalog"
	"asset-registry/shared/errs"
	"asset-registry/shared/routes"
)

// Settings are the settings of the API and of the edge. With the tags, the fields are flags of a command. A
// time limit of 0 stands for Config.Timeout.
type Settings struct {
	MaxConcurrent  int               `default:"4000" help:"${max_concurrent}"`
	ReadTimeout    time.Duration     `default:"5s" help:"Longest time for reading one asset, or a part of it."`
	ListTimeout    time.Duration     `default:"10s" help:"Longest time for a page of the feed."`
	ClientStreams  int               `default:"32" help:"${client_streams}"`
	ClientSegments int               `default:"16" help:"${client_segments}"`
	CORSOrigins    []string          `name:"cors-origins" default:"*" help:"${cors_origins}"`
	Deprecated     map[string]string `placeholder:"VERSION=DATE" help:"${deprecated}"`
	Sunset         map[string]string `placeholder:"VERSION=DATE" help:"${sunset}"`
	HSTS           time.Duration     `name:"hsts" help:"${hsts}"`
	Data           catalog.Settings  `embed:""`
}

func (Settings) HelpTexts() map[string]string {
	return map[string]string{
		"max_concurrent": "The most requests at once. Anonymous reads are refused from 70 % of it on, " +
			"reads with an API key from 85 %.",
		"client_streams": "The most streams and long polls of the feed that one API key has open at once, " +
			"or one address without a key.",
		"client_segments": "The most segments of the snapshot that one API key reads at once, " +
			"or one address without a key.",
		"cors_origins": "Origins whose web pages may use the API, with commas between them; * for all.",
		"hsts": "How long browsers use HTTPS only for this host (Strict-Transport-Security); 0: they are not told to. " +
			"They apply it to every port of the host, the console's too.",
		"deprecated": "Versions of the API that are deprecated since a date, such as 2.4=2027-01-31. " +
			"Their answers say so in the header Deprecation (RFC 9745).",
		"sunset": "Versions of the API that end on a date, such as 2.4=2027-12-31. " +
			"Their answers say so in the header Sunset (RFC 8594).",
	}
}

// Validate returns every fault of the settings.
func (s Settings) Validate() error {
	faults := []error{errs.If(s.HSTS%time.Second != 0, "--hsts must be whole seconds")}
	for i, dates := range []map[string]string{s.Deprecated, s.Sunset} {
		setting := []string{"--deprecated", "--sunset"}[i]
		for _, name := range slices.Sorted(maps.Keys(dates)) {
			_, known := routes.FindVersion(name)
			_, err := time.Parse(time.DateOnly, dates[name])
			faults = append(faults, errs.If(!known, "%s: there is no version %q", setting, name),
				errs.If(err != nil, "%s: the date of version %s must look like 2027-01-31", setting, name))
		}
	}
	return errors.Join(append(faults, s.Data.Validate())...)
}
