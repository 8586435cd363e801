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

// Ages say which versions of the API are old, as dates ("2027-01-31") by
// version. The tags make them settings of a command.
type Ages struct {
	Deprecated map[string]string `placeholder:"VERSION=DATE" help:"Versions of the API that are not to be used any more since a day, which their answers say (Deprecation, RFC 9745)."`
	Sunset     map[string]string `placeholder:"VERSION=DATE" help:"Versions of the API that end on a day, which their answers say (Sunset, RFC 8594)."`
}

func (a Ages) validate() error {
	var faults []error
	for _, dates := range []map[string]string{a.Deprecated, a.Sunset} {
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
	if date, err := time.Parse(time.DateOnly, s.config.Ages.Deprecated[v.Name]); err == nil {
		deprecated = "@" + strconv.FormatInt(date.Unix(), 10)
	}
	if date, err := time.Parse(time.DateOnly, s.config.Ages.Sunset[v.Name]); err == nil {
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
