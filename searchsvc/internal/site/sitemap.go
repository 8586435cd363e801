package site

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"asset-registry.example/client"
)

// A map of the site (sitemaps.org) has a part for each feedEntries entries of the feed. A
// part is named by the position in the feed that it begins after. Entries leave a part when
// they change and never enter it, save the last part, so the places where parts begin
// stay. The index of parts learns of new ones page by page.

const (
	mapNamespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
	mapsFor      = time.Minute // the feed is not asked again for new parts in this time
	walkWithin   = 2 * time.Second
	maxParts     = 50_000 // as many as an index may have
)

// mapParts are the places in the feed where parts begin, as far as they are known.
type mapParts struct {
	turn   turns           // of one that looks for parts
	starts []int64         // microseconds since the epoch
	next   client.Position // where the part after the last one begins
	until  time.Time       // they are not looked for again before it
}

// walk looks for further parts for a bounded time. The next call goes on.
func (s *Site) walk(ctx context.Context) ([]int64, error) {
	p := &s.parts
	end, err := p.turn.take(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	now := s.config.Now()
	if now.Before(p.until) {
		return p.starts, nil
	}
	if len(p.starts) == 0 {
		p.starts = []int64{0}
	}
	endReading, err := s.registry.turns.take(ctx)
	if err != nil {
		return nil, err
	}
	defer endReading()
	ctx, cancel := context.WithTimeout(ctx, walkWithin)
	defer cancel()
	for len(p.starts) < maxParts {
		page, err := s.registry.client.Page(ctx, client.Feed{Position: p.next, Limit: feedEntries})
		if err != nil && ctx.Err() != nil { // the next request goes on
			return p.starts, nil
		}
		if err != nil {
			p.starts, p.next = nil, client.Position{} // the data may be other data
			return nil, asFault(err)
		}
		if page.Len() < feedEntries {
			break
		}
		p.next = page.Next
		p.starts = append(p.starts, timeOf(page.Next.Offset).UnixMicro())
	}
	p.until = now.Add(mapsFor)
	return p.starts, nil
}

type mapIndex struct {
	XMLName xml.Name   `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 sitemapindex"`
	Maps    []mapEntry `xml:"sitemap"`
}

type mapEntry struct {
	Loc     string    `xml:"loc"`
	Lastmod string    `xml:"lastmod,omitempty"`
	Links   []mapLink `xml:"xhtml:link,omitempty"`
}

type mapLink struct {
	Rel      string `xml:"rel,attr"`
	Hreflang string `xml:"hreflang,attr"`
	Href     string `xml:"href,attr"`
}

type mapPages struct {
	XMLName xml.Name   `xml:"urlset"`
	Space   string     `xml:"xmlns,attr"`
	XHTML   string     `xml:"xmlns:xhtml,attr"`
	Pages   []mapEntry `xml:"url"`
}

// siteMap answers with the index of the map.
func (s *Site) siteMap(w http.ResponseWriter, r request) error {
	starts, err := s.walk(r.Context())
	if err != nil {
		return err
	}
	index := mapIndex{Maps: []mapEntry{{Loc: r.base + "/sitemap/pages"}}}
	for _, at := range starts {
		index.Maps = append(index.Maps, mapEntry{Loc: r.base + "/sitemap/" + strconv.FormatInt(at, 10)})
	}
	return s.sendXML(w, r, index)
}

// siteMapPart answers with a part of the map.
func (s *Site) siteMapPart(w http.ResponseWriter, r request) error {
	name := r.PathValue("offset")
	pages := mapPages{Space: mapNamespace, XHTML: "http://www.w3.org/1999/xhtml"}
	if name == "pages" {
		for _, rest := range []string{"/", "/statistics", "/about"} {
			pages.Pages = append(pages.Pages, mapped(r.base, rest, "")...)
		}
		return s.sendXML(w, r, pages)
	}
	after, err := strconv.ParseInt(name, 10, 64)
	if err != nil || after < 0 || after > maxMicros {
		return noPage(w, r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), listWithin)
	defer cancel()
	feed := client.Feed{Limit: feedEntries, Fields: []string{"status"}}
	if after > 0 {
		feed.Position.Offset = client.At(time.UnixMicro(after).UTC())
	}
	end, err := s.registry.turns.take(ctx)
	if err != nil {
		return err
	}
	defer end()
	r.end = end
	page, err := s.registry.client.Page(ctx, feed)
	if err != nil {
		return asFault(err)
	}
	for _, a := range page.Assets {
		if modified := timeOf(a.DateModified); a.Status != client.Deleted && assetID.MatchString(a.ID) && !modified.IsZero() {
			at := modified.Format(time.RFC3339Nano)
			pages.Pages = append(pages.Pages, mapped(r.base, "/assets/"+a.ID, at)...)
		}
	}
	return s.sendXML(w, r, pages)
}

// maxMicros is the end of the year 9999 in microseconds since the epoch.
const maxMicros = 253402300799999999

// mapped returns the entries of a page in each language.
func mapped(base, rest, modified string) []mapEntry {
	var all []mapEntry
	var links []mapLink
	for _, l := range Langs() {
		links = append(links, mapLink{"alternate", string(l), base + "/" + string(l) + rest})
	}
	for _, l := range Langs() {
		all = append(all, mapEntry{Loc: base + "/" + string(l) + rest, Lastmod: modified, Links: links})
	}
	return all
}

func (s *Site) sendXML(w http.ResponseWriter, r request, document any) error {
	text, err := xml.Marshal(document)
	if err != nil {
		return fmt.Errorf("make a map of the site: %w", err)
	}
	return s.send(w, r, http.StatusOK, "application/xml; charset=utf-8", append([]byte(xml.Header), text...))
}

// robots answers robots.txt (RFC 9309), which names the map of the site. The API is no
// place for search engines.
func (s *Site) robots(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = fmt.Fprintf(w, "User-agent: *\nDisallow: /api/\nSitemap: %s/sitemap.xml\n", s.baseURL(r)) // may be gone
}
