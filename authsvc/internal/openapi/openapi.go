// Package openapi holds the OpenAPI document of the admin API. A program derives
// it from the routes and types of package adminapi; do not edit it:
//
//	go test ./deploy/test/openapi/documents -update
package openapi

import _ "embed" // embeds the document

//go:embed admin.json
var asJSON []byte

// JSON returns the document.
func JSON() []byte { return asJSON }
