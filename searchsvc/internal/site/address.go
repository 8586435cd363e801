package site

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/query"
)

var (
	assetID = regexp.MustCompile(`^[0-9a-f]{32}$`)

	// assetNumber matches the numbers of assets that people use (docs/contract.md, "Identifiers").
	assetNumber = regexp.MustCompile(`(?i)^ua-ar-[a-z0-9-]{1,60}$`)
)

// mostNamed is the maximum number of hits of a search for a number that are compared with the number. The asset with
// this number need not be the first hit, because other assets may have the number as a word.
const mostNamed = 20

// assetPath returns the path of the page of an asset.
func assetPath(l Lang, id string) string { return "/" + string(l) + "/assets/" + url.PathEscape(id) }

// redirect sends a browser to another path of the site. If err is not nil, it returns err and sends nothing.
func redirect(w http.ResponseWriter, r request, to string, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache")
	httpserver.Redirect(w, http.StatusFound, to)
	return nil
}

// anyLanguage redirects to the page of an asset in the language that the browser prefers.
func anyLanguage(w http.ResponseWriter, r request) error {
	id := r.PathValue("id")
	if !assetID.MatchString(strings.ToLower(id)) && !assetNumber.MatchString(id) {
		return noPage(w, r)
	}
	return redirect(w, r, assetPath(r.lang, id), nil)
}

// withoutSlash redirects to the page of a path without the slash at its end.
func (s *Site) withoutSlash(w http.ResponseWriter, r request) error {
	to := *r.URL
	to.Path, to.RawPath = strings.TrimSuffix(to.Path, "/"), ""
	_, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, URL: &to})
	if to.Path == r.URL.Path || strings.HasSuffix(pattern, "/") {
		return noPage(w, r)
	}
	return redirect(w, r, pathWithQuery(r.Request, to.EscapedPath()), nil)
}

// pathWithQuery returns a path with the query of a request.
func pathWithQuery(r *http.Request, path string) string {
	if r.URL.RawQuery == "" {
		return path
	}
	return path + "?" + r.URL.RawQuery
}

// favicon redirects to the icon of the site.
func favicon(w http.ResponseWriter, r request) error {
	path, err := filePath("icon.svg")
	return redirect(w, r, path, err)
}

// otherAddress returns the page's own path if the request names the asset by its number, or by its id in
// capitals. It returns "" if the request already has this path. A number finds only assets that the search has,
// so removed assets have no page by their number.
func (s *Site) otherAddress(r request) (path string, err error) {
	named := r.PathValue("id")
	if lower := strings.ToLower(named); assetID.MatchString(lower) {
		if lower == named {
			return "", nil
		}
		return assetPath(r.lang, lower), nil
	}
	if !assetNumber.MatchString(named) {
		return "", nil
	}
	if err := s.takeTurn(&r); err != nil {
		return "", err
	}
	defer r.end()
	found, err := s.config.Searcher.Search(r.Context(),
		search.Query{Text: named, Exact: true, Sort: search.FirstPublished, Limit: mostNamed})
	if err != nil {
		return "", err
	}
	for _, h := range found.Hits {
		if a, err := h.Decode(); err == nil && strings.EqualFold(a.AssetID, named) {
			return assetPath(r.lang, a.ID), nil
		}
	}
	return "", fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found")
}

const (
	backParam = "back" // parameter with the query of the search that led to an asset
	mostQuery = 1000   // bytes of this query, and of each query that a page repeats in many links
)

// repeated returns a path with a query, for a page that has many links with this query. If the query is too
// long, it returns "", so that the page stays small.
func repeated(path, query string) string {
	if len(query) > mostQuery {
		return ""
	}
	return path + query
}

// backFrom returns the query for a link to an asset. With this query, the page of the asset can link back to a
// page of a search. If the query of that page is too long, the link back leads to the first page of the search.
// The result is "" if the search has no conditions, or if even the query of its first page is too long.
func backFrom(q search.Query) string {
	text := q.Values().Encode()
	if len(text) > mostQuery && q.After != nil {
		q.After = nil
		text = q.Values().Encode()
	}
	if text == "" || len(text) > mostQuery {
		return ""
	}
	return "?" + url.Values{backParam: {text}}.Encode()
}

// backTo returns the path of the search that led to a page, and the part of the page's query that names this search.
// Both are built anew from parameters that Parse accepts, so the path never leads out of the site. If the query names
// no such search, both are "".
func backTo(r request) (path, kept string) {
	text := r.URL.Query().Get(backParam)
	if text == "" || len(text) > mostQuery {
		return "", ""
	}
	values, faults := query.Read(text, search.OfAPI)
	q, err := search.Parse(values, kyiv, faults...)
	if err != nil {
		return "", ""
	}
	q = plainQuery(q)
	if kept = backFrom(q); kept == "" {
		return "", ""
	}
	return "/" + string(r.lang) + "/" + queryOf(q), kept
}
