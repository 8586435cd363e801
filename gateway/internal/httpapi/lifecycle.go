package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/routes"
)

// lifecycle sets the headers Deprecation (RFC 9745) and Sunset (RFC 8594), if the version has these dates.
func (a *API) lifecycle(v routes.Version) step {
	var deprecated, sunset string
	if date, err := time.Parse(time.DateOnly, a.config.Settings.Deprecated[v.Name]); err == nil {
		deprecated = "@" + strconv.FormatInt(date.Unix(), 10)
	}
	if date, err := time.Parse(time.DateOnly, a.config.Settings.Sunset[v.Name]); err == nil {
		sunset = date.Format(http.TimeFormat)
	}
	return check(func(c *gin.Context) error {
		if deprecated != "" {
			c.Header("Deprecation", deprecated)
		}
		if sunset != "" {
			c.Header("Sunset", sunset)
		}
		return nil
	})
}
