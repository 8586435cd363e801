package described

import (
	"fmt"
	"strings"
	"sync"

	"asset-registry/deploy/test/openapi/documents"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/routes"
)

// Versions are the documents of all versions of the public API, and of the admin
// API.
type Versions map[string]*Document // the key is the version's name in a path

// Public returns the documents of this source tree.
var Public = sync.OnceValues(func() (Versions, error) {
	all := Versions{}
	for _, v := range routes.Versions() {
		d, err := documents.Public(v.Target)
		if err != nil {
			return nil, err
		}
		if all[v.Name], err = Parse(v.Prefix(), d); err != nil {
			return nil, fmt.Errorf("version %s: %w", v.Name, err)
		}
	}
	d, err := documents.Admin()
	if err != nil {
		return nil, err
	}
	all[admin], err = Parse(adminapi.Prefix, d)
	return all, err
})

// admin is the key of the admin API's document in Versions.
const admin = "admin"

// Check returns an error that lists everything in an exchange that the document of its version does not describe.
// Paths outside all versions are not checked, except for the paths of files, which all documents have.
func (all Versions) Check(x Exchange) error {
	segments := strings.Split(x.Request.URL.Path, "/") // "", "api", version, and further segments
	switch "/" + segments[1] {
	case routes.RegisterFile, routes.UploadFile, routes.GetFile:
		return all[routes.Current].Check(x)
	}
	if len(segments) < 4 {
		return nil
	}
	d := all[segments[2]]
	if segments[1] == "admin" {
		d = all[admin]
	}
	if d == nil {
		return nil
	}
	return d.Check(x)
}
