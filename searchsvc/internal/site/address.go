package site

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/fault"
)

var (
	assetID = regexp.MustCompile(`^[0-9a-f]{32}$`)

	// assetNumber matches numbers that people read (docs/contract.md, "Identifiers").
	assetNumber = regexp.MustCompile(`(?i)^ua-ar-[a-z0-9-]{1,60}$`)
)

// mostNamed is the number of assets that may have a number among their words before the asset
// itself is found.
const mostNamed = 20

// assetPath returns the path of the page of an asset.
func assetPath(l Lang, id string) string { return "/" + string(l) + "/assets/" + url.PathEscape(id) }

// redirect sends a browser to another path of the site, or returns an error.
func redirect(w http.ResponseWriter, r request, to string, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache")
	http.Redirect(w, r.Request, to, http.StatusFound)
	return nil
}

// anyLanguage leads to the page of an asset in the language of the request.
func anyLanguage(w http.ResponseWriter, r request) error {
	id := r.PathValue("id")
	if !assetID.MatchString(strings.ToLower(id)) && !assetNumber.MatchString(id) {
		return noPage(w, r)
	}
	return redirect(w, r, assetPath(r.lang, id), nil)
}

// otherAddress returns where the page is that a path names by the number of an asset, or in
// capitals. It is "" for the page's own address. Assets that the search does not have, such as
// removed ones, have no page by their number.
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
	end, err := s.config.Searcher.Turn(r.Context())
	if err != nil {
		return "", err
	}
	defer end()
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
	backParam = "back" // the query of the search that has led to an asset
	mostQuery = 1000   // bytes of it, and of each query that a page has in many links
)

// repeated returns a path with a query for a page that has many such links. It is "" if the query is too
// long, so that a page does not grow with the product of both.
func repeated(path, query string) string {
	if len(query) > mostQuery {
		return ""
	}
	return path + query
}

// backFrom returns the query of the address of an asset, which brings back to a page of a search, or to the
// first one if the address of the page is too long. It is "" for the search without conditions, and for one
// that is too long.
func backFrom(q search.Query) string {
	query := q.Values().Encode()
	if len(query) > mostQuery && q.After != nil {
		q.After = nil
		query = q.Values().Encode()
	}
	if query == "" || len(query) > mostQuery {
		return ""
	}
	return "?" + url.Values{backParam: {query}}.Encode()
}

// backTo returns the path of the search that has led to a page, and the part of the page's query
// that says so. Both are made from the parameters of a search that it understands, so the path
// never leads out of the site. They are "" for anything else.
func backTo(r request) (path, kept string) {
	text := r.URL.Query().Get(backParam)
	if text == "" || len(text) > mostQuery {
		return "", ""
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return "", ""
	}
	for name := range values {
		if !slices.Contains(search.Params(), name) {
			return "", ""
		}
	}
	q, err := search.ParseIn(values, kyiv)
	if err != nil {
		return "", ""
	}
	q = plainQuery(q)
	if kept = backFrom(q); kept == "" {
		return "", ""
	}
	return "/" + string(r.lang) + "/" + queryOf(q), kept
}
