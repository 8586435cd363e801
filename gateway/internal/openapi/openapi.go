// Package openapi holds the OpenAPI documents of the public API, one for each
// version. A program derives them from the field table, the route table and the
// error texts; do not edit them:
//
//	go test ./deploy/test/openapi/documents -update
package openapi

import (
	"embed"
	"fmt"
)

//go:embed *.json
var files embed.FS

// JSON returns the document of a version, such as "2.5". It panics if the version has no document. A test checks
// that each version in routes.Targets has a document.
func JSON(version string) []byte {
	text, err := files.ReadFile(version + ".json")
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	return text
}
