package gateway

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// spore answers with a description of every route, in the SPORE form that
// clients ask for when they start (docs/contract.md, "Routes").
func (s *Server) spore(v routes.Version) gin.HandlerFunc {
	methods := gin.H{}
	for _, r := range routes.All() {
		if r.Method == http.MethodHead || !v.Has(r) || r.AtSearch && s.search == nil {
			continue
		}
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusCreated
		}
		methods[sporeName(r)] = gin.H{"path": r.Pattern, "method": r.Method, "expected_status": []int{status}}
	}
	return httpserver.Handle(func(c *gin.Context) error {
		return httpserver.JSON(c, http.StatusOK, gin.H{
			"name":            "asset registry",
			"version":         v.Target,
			"base_url":        s.baseURL(c.Request) + routes.Prefix(v.Target),
			"expected_status": []int{http.StatusOK},
			"methods":         methods,
		})
	})
}

// sporeName names a route: "patch_assets_id_items_part".
func sporeName(r routes.Route) string {
	return strings.ToLower(r.Method) + strings.NewReplacer("/:", "_", "/", "_").Replace(r.Pattern)
}
