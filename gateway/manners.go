package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/version"
)

// Manners are how the edge treats its clients, beside limits. The tags make them
// settings of a command; the zero value has no limits of its own.
type Manners struct {
	MaxConcurrent int               `default:"4000" help:"Most requests under way at once. Anonymous reads are refused from 70 % of that on, others' reads from 85 %."`
	ReadTimeout   time.Duration     `default:"5s" help:"Longest time for reading one asset, or a part of it."`
	ListTimeout   time.Duration     `default:"10s" help:"Longest time for a page of the feed."`
	CORSOrigins   []string          `name:"cors-origins" default:"*" help:"Origins whose pages may use the API in a browser, with commas between them; * for all."`
	Deprecated    map[string]string `placeholder:"VERSION=DATE" help:"Versions of the API that are not to be used any more since a day, 2027-01-31, which their answers say (Deprecation, RFC 9745)."`
	Sunset        map[string]string `placeholder:"VERSION=DATE" help:"Versions of the API that end on a day, which their answers say (Sunset, RFC 8594)."`
}

func (m Manners) validate() error {
	var faults []error
	if m.MaxConcurrent < 0 || m.ReadTimeout < 0 || m.ListTimeout < 0 {
		faults = append(faults, errors.New("the limit of requests and the time-outs must not be negative"))
	}
	for _, dates := range []map[string]string{m.Deprecated, m.Sunset} {
		for name, date := range dates {
			if !slices.ContainsFunc(version.Table, func(v version.Version) bool { return v.Name == name }) {
				faults = append(faults, fmt.Errorf("there is no version %q that could be old", name))
			}
			if _, err := time.Parse(time.DateOnly, date); err != nil {
				faults = append(faults, fmt.Errorf("the date of version %s, %q, must look like 2027-01-31", name, date))
			}
		}
	}
	return errors.Join(faults...)
}

// age tells whoever uses a version how old it is.
func (s *Server) age(v version.Version) gin.HandlerFunc {
	var deprecated, sunset string
	if date, err := time.Parse(time.DateOnly, s.config.Manners.Deprecated[v.Name]); err == nil {
		deprecated = "@" + strconv.FormatInt(date.Unix(), 10)
	}
	if date, err := time.Parse(time.DateOnly, s.config.Manners.Sunset[v.Name]); err == nil {
		sunset = date.Format(http.TimeFormat)
	}
	return func(c *gin.Context) {
		if deprecated != "" {
			c.Header("Deprecation", deprecated)
		}
		if sunset != "" {
			c.Header("Sunset", sunset)
		}
	}
}
