package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/catalog"
	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/export"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// manifestBytes is the maximum number of bytes of a manifest of whole copies.
const manifestBytes = 64 << 10

// routeCatalog adds the routes of the manifest of whole copies and of the documents that describe these copies. A
// mirror refuses these requests and names its origin.
func (a *API) routeCatalog(engine *gin.Engine) {
	add := func(path string, answer handler, places *concurrency.Limiter) {
		if a.isMirror() {
			answer, places = a.toOrigin, nil
		}
		engine.Match(reading, path, a.pipeline(route{class: routes.Read, answer: answer, places: places}))
	}
	add(routes.CopyManifest, a.forwardTo(a.config.Assets, samePath), a.places.assets)
	add(routes.Catalogue, a.answerCatalog, a.places.assets)
	for path, file := range a.descriptions {
		add(path, func(c *gin.Context) error {
			file.ServeHTTP(c.Writer, c.Request)
			return nil
		}, nil)
	}
	if a.config.Search == nil {
		add(routes.Data, func(c *gin.Context) error {
			httpserver.Redirect(c.Writer, http.StatusFound, routes.Catalogue)
			return nil
		}, nil)
	}
}

// answerCatalog answers with the catalogue of the newest whole copies.
func (a *API) answerCatalog(c *gin.Context) error {
	text, err := a.config.Assets.For(a.nameOf(c)).Read(c.Request.Context(), routes.CopyManifest, nil, manifestBytes)
	if err != nil {
		return err
	}
	var newest struct{ Data export.Manifest }
	if err := json.Unmarshal(text, &newest); err != nil {
		return fmt.Errorf("read the manifest of whole copies: %w", err)
	}
	body, err := catalog.JSONLD(a.config.Settings.Data, a.baseURL(c.Request), newest.Data)
	if err != nil {
		return fmt.Errorf("make the catalogue: %w", err)
	}
	c.Header("Cache-Control", "no-cache")
	c.Data(http.StatusOK, catalog.ContentType, append(body, '\n'))
	return nil
}
