package httpapi

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// spore answers with a description of every route in the SPORE format. Clients ask for it when they start
// (docs/contract.md, "Routes").
func (a *API) spore(v routes.Version) handler {
	methods := gin.H{}
	for _, r := range routes.All() {
		if r.Method == http.MethodHead || !v.Has(r) || !a.has(r) {
			continue
		}
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusCreated
		}
		methods[sporeName(r)] = gin.H{"path": r.Pattern, "method": r.Method, "expected_status": []int{status}}
	}
	return func(c *gin.Context) error {
		c.Header("Cache-Control", "no-cache")
		return httpserver.JSON(c, http.StatusOK, gin.H{
			"name":            "asset registry",
			"version":         v.Target,
			"base_url":        a.baseURL(c.Request) + routes.Prefix(v.Target),
			"expected_status": []int{http.StatusOK},
			"methods":         methods,
		})
	}
}

// sporeName returns the name of a route: "patch_assets_id_items_part".
func sporeName(r routes.Route) string {
	return strings.ToLower(r.Method) + strings.NewReplacer("/:", "_", "/", "_").Replace(r.Pattern)
}
