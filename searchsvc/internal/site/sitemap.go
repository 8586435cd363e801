package site

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/fair"
)

// A sitemap (sitemaps.org) has parts of feedEntries entries of the feed. The name of a part is the position in the
// feed after which the part begins. An entry leaves its part when it changes, and new entries come only to the last
// part. So the places where parts begin stay the same. Requests for the index of the sitemap find new parts by
// reading the feed, page by page.

const (
	mapNamespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
	mapsFor      = time.Minute // how long the site waits before it looks for new parts again
	walkWithin   = 2 * time.Second
	maxParts     = 50_000 // maximum number of parts that an index may have
)

// mapParts has the places in the feed where parts begin, as far as they were found.
type mapParts struct {
	turn   *fair.Semaphore // has one turn; only the request that holds it looks for parts
	starts []int64         // microseconds since the epoch
	next   client.Position // where the part after the last one begins
	until  time.Time       // no request looks for new parts before this time
}

// walk looks for new parts, for at most walkWithin. The next call continues where it stopped. The caller must have the
// right to read (takeReading), so it never waits for that while others wait for its walk.
func (s *Site) walk(ctx context.Context) ([]int64, error) {
	p := &s.parts
	end, err := p.turn.Acquire(ctx, visitorOf(ctx).caller, 1)
	if err != nil {
		return nil, Busy()
	}
	defer end()
	now := s.config.Now()
	if now.Before(p.until) {
		return p.starts, nil
	}
	if len(p.starts) == 0 {
		p.starts = []int64{0}
	}
	ctx, cancel := context.WithTimeout(ctx, walkWithin)
	defer cancel()
	for len(p.starts) < maxParts {
		page, err := s.registry.client.Page(ctx, client.Feed{Position: p.next, Limit: feedEntries})
		if err != nil && ctx.Err() != nil { // the next request continues
			return p.starts, nil
		}
		if err != nil {
			p.starts, p.next = nil, client.Position{} // begin again, because the registry may now have different data
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

// siteMap answers with the index of the sitemap.
func (s *Site) siteMap(w http.ResponseWriter, r request) error {
	if err := s.takeReading(&r); err != nil {
		return err
	}
	defer r.end()
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

// siteMapPart answers with a part of the sitemap.
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
	if err := s.takeReading(&r); err != nil {
		return err
	}
	defer r.end()
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

// mapped returns the sitemap entries of a page, one for each language.
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
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	defer r.end()
	text, err := xml.Marshal(document)
	if err != nil {
		return fmt.Errorf("make a map of the site: %w", err)
	}
	return s.send(w, r, http.StatusOK, "application/xml; charset=utf-8", append([]byte(xml.Header), text...))
}

// robots answers robots.txt (RFC 9309), which names the sitemap and keeps search engines away from the API.
func (s *Site) robots(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	text := "User-agent: *\nDisallow: /api/\nSitemap: " + s.baseURL(r) + "/sitemap.xml\n"
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = io.WriteString(w, text) // an error means that the client has left
}
