// Package routes lists the public API: its versions, the parts of an asset, and
// every route with its request class (docs/contract.md, "Routes").
//
// The gateway registers its routes from this list. A test of the asset service
// compares its routes with the list. To add a route, a part or a version, add a
// row here.
package routes

import (
	"net/http"
	"slices"
	"strings"

	"asset-registry/shared/filelink"
)

// Class says what a request does. The rate limits have one price for each class.
type Class string

// The classes of requests.
const (
	List  Class = "list"  // returns a page of the feed, or searches
	Own   Class = "own"   // returns a page of the caller's own assets
	Read  Class = "read"  // changes nothing, and is neither a List nor an Own
	Write Class = "write" // may change something
)

// Classes returns every class, in the order in which answers list them.
func Classes() []Class { return []Class{List, Own, Read, Write} }

// Version is one version of the API.
type Version struct {
	Name   string // the path segment after /api/
	Target string // the version that the gateway requests from the asset service
}

// Prefix returns the start of every path of the version: "/api/2.5".
func (v Version) Prefix() string { return Prefix(v.Name) }

// Prefix returns the start of every path of the version with this name.
func Prefix(version string) string { return "/api/" + version }

// Current is the version that clients get as version 0 (docs/contract.md, "Versions").
const Current = "2.5"

// Versions returns every version that clients may name in a path.
func Versions() []Version {
	return []Version{
		{Name: "2.4", Target: "2.4"},
		{Name: "2.5", Target: "2.5"},
		{Name: "0", Target: Current},
	}
}

// FindVersion returns the version with the given name. The result `ok` is false if no version has this name.
func FindVersion(name string) (v Version, ok bool) {
	for _, v := range Versions() {
		if v.Name == name {
			return v, true
		}
	}
	return Version{}, false
}

// Targets returns the versions that the asset service must answer, each once.
func Targets() []string {
	var targets []string
	for _, v := range Versions() {
		if !slices.Contains(targets, v.Target) {
			targets = append(targets, v.Target)
		}
	}
	return targets
}

// Part is a list inside an asset whose elements can be read and changed by separate routes (docs/contract.md,
// "Parts").
type Part struct {
	Name    string   // the path segment
	Methods []string // the methods that change or remove one element
}

// Documents is the name of the part whose elements may have files (docs/contract.md, "Files").
const Documents = "documents"

// Parts returns the parts of an asset. POST adds an element to any of them.
func Parts() []Part {
	return []Part{
		{Name: "items", Methods: []string{http.MethodPatch}},
		{Name: "decisions", Methods: []string{http.MethodPatch}},
		{Name: Documents, Methods: []string{http.MethodPatch, http.MethodPut}},
		{Name: "related_processes", Methods: []string{http.MethodPatch, http.MethodDelete}},
	}
}

// Route is one method of one path of the public API.
type Route struct {
	Method    string
	Pattern   string // the path after the version's prefix, as gin writes it
	Class     Class  // empty for /health, which the rate limits do not count
	Key       bool   // a request without a valid API key is refused
	AtGateway bool   // the gateway answers by itself; the asset service lacks the route
	AtSearch  bool   // the route needs a search service, which answers it unless AtGateway is true
	Since     string // the first version that has the route; empty: all versions have it
}

// Ownership is the last segment of the path for a change of an asset's owner
// (docs/contract.md, "Ownership").
const Ownership = "ownership"

// Recovery is the last segment of the path for new tokens of an asset
// (docs/contract.md, "Recovery").
const Recovery = "recovery"

// Revisions is the segment of the path of an asset's changes (docs/contract.md,
// "Revisions").
const Revisions = "revisions"

// Segment is the pattern of a file of the snapshot (docs/contract.md, "Snapshot").
const Segment = "/snapshot/segments/:file"

// OwnAssets is the path of the list of the caller's own assets (docs/contract.md, "Own assets").
const OwnAssets = "/me/assets"

// Webhooks is the path of webhooks (docs/contract.md, "Webhooks").
const Webhooks = "/webhooks"

// Search is the path of a search (docs/contract.md, "Search").
const Search = "/search"

// Exports are the paths of a search whose answer is a file (docs/contract.md, "Exports").
var Exports = []string{Search + ".csv", Search + ".xlsx", Search + ".geojson"}

// Suggest is the path of suggestions while somebody types a search.
const Suggest = Search + "/suggest"

// Dictionaries is the path of the lists of values with their names (docs/contract.md, "Dictionaries").
const Dictionaries = "/dictionaries"

// Has reports whether the version has a route. Versions are compared by their names, because the alphabetical order
// of the names is the order of the versions.
func (v Version) Has(r Route) bool { return v.Target >= r.Since }

// All returns the routes of all versions. Version.Has reports which of them a version has. Each GET route answers HEAD
// too, and the list has one row for GET and one row for HEAD.
func All() []Route {
	all := []Route{
		{Method: http.MethodGet, Pattern: "/me", Class: Read, Key: true, AtGateway: true},
		{Method: http.MethodGet, Pattern: OwnAssets, Class: Own, Key: true},
		{Method: http.MethodGet, Pattern: "/spore", Class: Read, AtGateway: true},
		{Method: http.MethodGet, Pattern: "/health", AtGateway: true},
		{Method: http.MethodGet, Pattern: "/openapi.json", Class: Read, AtGateway: true},
		{Method: http.MethodGet, Pattern: "/openapi.yaml", Class: Read, AtGateway: true},
		{Method: http.MethodGet, Pattern: "/assets", Class: List},
		{Method: http.MethodPost, Pattern: "/assets", Class: Write, Key: true},
		{Method: http.MethodGet, Pattern: "/assets/:id", Class: Read},
		{Method: http.MethodPatch, Pattern: "/assets/:id", Class: Write, Key: true},
		{Method: http.MethodPut, Pattern: "/assets/:id", Class: Write, Key: true},
		{Method: http.MethodDelete, Pattern: "/assets/:id", Class: Write, Key: true},
		{Method: http.MethodPost, Pattern: "/assets/:id/" + Ownership, Class: Write, Key: true},
		{Method: http.MethodPost, Pattern: "/assets/:id/" + Recovery, Class: Write, Key: true},
		{Method: http.MethodGet, Pattern: "/snapshot", Class: Read},
		{Method: http.MethodGet, Pattern: Segment, Class: Read},
		{Method: http.MethodGet, Pattern: Search, Class: List, AtSearch: true, Since: "2.5"},
		{Method: http.MethodGet, Pattern: Suggest, Class: List, AtSearch: true, Since: "2.5"},
		{Method: http.MethodGet, Pattern: Dictionaries, Class: List, AtSearch: true, Since: "2.5"},
		{Method: http.MethodPost, Pattern: "/transfers", Class: Write, Key: true},
		{Method: http.MethodGet, Pattern: "/transfers/:transfer", Class: Read},
		{Method: http.MethodGet, Pattern: "/assets/:id/" + Revisions, Class: Read, Key: true},
		{Method: http.MethodDelete, Pattern: "/assets/:id/" + Revisions + "/:number", Class: Write, Key: true},
		{Method: http.MethodGet, Pattern: "/assets/:id/proof", Class: Read},
		{Method: http.MethodGet, Pattern: Webhooks, Class: Read, Key: true},
		{Method: http.MethodPost, Pattern: Webhooks, Class: Write, Key: true},
		{Method: http.MethodGet, Pattern: Webhooks + "/:webhook", Class: Read, Key: true},
		{Method: http.MethodPatch, Pattern: Webhooks + "/:webhook", Class: Write, Key: true},
		{Method: http.MethodDelete, Pattern: Webhooks + "/:webhook", Class: Write, Key: true},
		{Method: http.MethodPost, Pattern: Webhooks + "/:webhook/replay", Class: Write, Key: true},
		{Method: http.MethodPost, Pattern: Webhooks + "/:webhook/rotate", Class: Write, Key: true},
	}
	for _, path := range Exports {
		all = append(all, Route{
			Method: http.MethodGet, Pattern: path, Class: List, AtGateway: true, AtSearch: true, Since: "2.5",
		})
	}
	for _, p := range Parts() {
		elements, element := "/assets/:id/"+p.Name, "/assets/:id/"+p.Name+"/:part"
		all = append(all,
			Route{Method: http.MethodGet, Pattern: elements, Class: Read},
			Route{Method: http.MethodPost, Pattern: elements, Class: Write, Key: true},
			Route{Method: http.MethodGet, Pattern: element, Class: Read},
		)
		for _, method := range p.Methods {
			all = append(all, Route{Method: method, Pattern: element, Class: Write, Key: true})
		}
	}
	for _, r := range slices.Clone(all) {
		if r.Method == http.MethodGet {
			r.Method = http.MethodHead
			all = append(all, r)
		}
	}
	return all
}

// AnyLanguage is the pattern of the address of an asset's page, without a language. The address leads to the page in
// the language that the browser prefers.
const AnyLanguage = "/assets/:id"

// Site returns the routes of the pages for people, which the search service answers (docs/site.md). Their patterns
// are whole paths. A page with assets needs a search or several reads, so it costs as much as a page of the feed. GET /
// is not among the routes: the gateway answers programs itself, and passes requests of browsers on.
func Site() []Route {
	var all []Route
	for _, r := range []Route{
		{Pattern: "/uk", Class: Read}, {Pattern: "/uk/*path", Class: List},
		{Pattern: "/en", Class: Read}, {Pattern: "/en/*path", Class: List}, {Pattern: AnyLanguage, Class: Read},
		{Pattern: Data, Class: Read},
		{Pattern: "/sitemap.xml", Class: List}, {Pattern: "/sitemap/:part", Class: List},
		{Pattern: "/robots.txt", Class: Read}, {Pattern: "/site/*file", Class: Read},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r.Method, r.AtSearch = method, true
			all = append(all, r)
		}
	}
	return all
}

// The paths at the search service that answer browsers for paths without a route.
const (
	NoPage = "/assets/-"       // a page that says so
	Icon   = "/uk/favicon.ico" // leads to the icon
)

// Favicon is the path at which browsers look for an icon.
const Favicon = "/favicon.ico"

// typed has the paths that people type instead of an address of the site, in small letters and without a slash at the
// end.
var typed = map[string]string{
	"/uk": "/uk/", "/ua": "/uk/", "/en": "/en/", "/search": "/", "/assets": "/", Data: Data, "/docs": "/docs",
	"/docs/uk": "/docs/uk",
}

// Meant returns the address of the site that a person means by a path, and "" if there is none.
func Meant(path string) string { return typed[strings.ToLower(strings.TrimSuffix(path, "/"))] }

// The paths of files (docs/files.md).
const (
	RegisterFile = "/register"
	UploadFile   = filelink.UploadPath
	GetFile      = filelink.GetPath
	RemovedFiles = filelink.RemovedPath
	Picture      = GetFile + "/:file/:side"
	Archive      = GetFile + "/:file/documents.zip" // ":file" is the id of an asset
)

// Files returns the routes of files, which the file service answers. Their patterns are whole
// paths.
func Files() []Route {
	return []Route{
		{Method: http.MethodPost, Pattern: RegisterFile, Class: Write, Key: true},
		{Method: http.MethodPost, Pattern: UploadFile, Class: Write, Key: true},
		{Method: http.MethodPost, Pattern: UploadFile + "/:file", Class: Write, Key: true},
		{Method: http.MethodGet, Pattern: GetFile, Class: List, Key: true},
		{Method: http.MethodHead, Pattern: GetFile, Class: List, Key: true},
		{Method: http.MethodGet, Pattern: RemovedFiles, Class: List},
		{Method: http.MethodHead, Pattern: RemovedFiles, Class: List},
		{Method: http.MethodGet, Pattern: GetFile + "/:file", Class: Read},
		{Method: http.MethodHead, Pattern: GetFile + "/:file", Class: Read},
		{Method: http.MethodDelete, Pattern: GetFile + "/:file", Class: Write, Key: true},
		{Method: http.MethodGet, Pattern: Picture, Class: Read},
		{Method: http.MethodHead, Pattern: Picture, Class: Read},
		{Method: http.MethodGet, Pattern: Archive, Class: Read},
		{Method: http.MethodHead, Pattern: Archive, Class: Read},
	}
}

// IsTransfer reports whether requests with a method and a pattern of Files transfer the bytes of a file.
func IsTransfer(method, pattern string) bool {
	return strings.HasPrefix(pattern, UploadFile) ||
		strings.HasPrefix(pattern, GetFile+"/") && pattern != RemovedFiles && method != http.MethodDelete
}

// The paths of whole copies (docs/contract.md, "Whole copies").
const (
	Data       = "/data"
	Copy       = Data + "/:name"
	CopyByHash = Data + "/:name/:file" // ":name" is the hash of the file, and ":file" is its name

	CopyManifest = Data + "/manifest.json"  // the list of the newest whole copies
	Catalogue    = Data + "/catalog.jsonld" // the list of whole copies as DCAT-AP, with texts of the operator
)

// PublicPath is a path that readers from outside may ask a gateway for.
type PublicPath struct {
	Path  string
	Exact bool // only this path; otherwise also all paths below it
}

// Public returns the paths that a balancer passes to the gateways: the API, its
// documentation, the public log, files, whole copies, the pages for people, and the welcome answer. Other paths,
// such as /readyz, are for the operator.
func Public() []PublicPath {
	return []PublicPath{
		{Path: "/", Exact: true},
		{Path: "/api"},
		{Path: "/docs"},
		{Path: "/log"},
		{Path: RegisterFile, Exact: true},
		{Path: UploadFile},
		{Path: GetFile},
		{Path: Data},
		{Path: "/uk"},
		{Path: "/en"},
		{Path: "/ua"},
		{Path: "/UA"},
		{Path: "/UK"},
		{Path: "/EN"},
		{Path: "/search"},
		{Path: "/assets"},
		{Path: "/site"},
		{Path: "/sitemap"},
		{Path: "/sitemap.xml", Exact: true},
		{Path: "/robots.txt", Exact: true},
		{Path: Favicon, Exact: true},
	}
}
