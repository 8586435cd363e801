package site

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"time"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/fault"
)

// atom is a page of an Atom feed (RFC 4287, RFC 5005).
type atom struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	Lang    string      `xml:"xml:lang,attr"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Said    string      `xml:"subtitle,omitempty"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID        string       `xml:"id"`
	Title     string       `xml:"title"`
	Updated   string       `xml:"updated"`
	Published string       `xml:"published,omitempty"`
	Link      atomLink     `xml:"link"`
	Category  atomCategory `xml:"category"`
	Summary   string       `xml:"summary,omitempty"`
}

type atomCategory struct {
	Term  string `xml:"term,attr"`
	Label string `xml:"label,attr"`
}

// feed answers with the found assets that changed last, and a link to the page with the assets that changed
// earlier. With the order of search.LatestPublished, it has the newest assets, and changes of assets are no news.
func (s *Site) feed(w http.ResponseWriter, r request) error {
	sent, faults := readQuery(r.lang, r.URL.RawQuery)
	if sent.Has("mode") {
		faults = append(faults, fault.Detail{Location: fault.Query, Name: "mode",
			Description: "The feed has no test assets. Leave the parameter out."})
	}
	q, err := search.Parse(sent, kyiv, faults...)
	if err != nil {
		return err
	}
	after, sort := q.After, q.Sort
	q = feedQuery(q)
	if q.Limit = search.DefaultLimit; sort == search.LatestPublished {
		q.Sort = sort
	}
	first := q
	if sort == q.Sort && after != nil { // a cursor of another order means nothing here
		q.After, first.Also = after, after.Reading.Has(search.ByAlso)
	}
	named := first
	named.Also = false // the name of the feed has its order
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	defer r.end()
	asked := q
	asked.FacetLimit = 1
	for _, p := range search.Properties { // facets have the names of the filters' values
		if q.Filters.ValuesOf(p.Name) != nil {
			asked.Facets = append(asked.Facets, p.Name)
		}
	}
	found, err := s.config.Searcher.Search(r.Context(), asked)
	if err != nil {
		return err
	}
	root := r.base + "/" + string(r.lang)
	f := atom{
		Lang: string(r.lang), ID: root + "/feed.atom" + queryOf(named), Author: texts["site.name"].in(r.lang),
		Title: s.feedTitle(r.lang, q, found.Facets),
		Links: []atomLink{
			{"self", "application/atom+xml", root + "/feed.atom" + queryOf(q)},
			{"alternate", "text/html", root + "/" + queryOf(first)},
			{"first", "application/atom+xml", root + "/feed.atom" + queryOf(first)},
		},
	}
	if found.Next != nil {
		next := first
		next.After, next.Also = found.Next, false // its address has the order, and its cursor the words
		f.Links = append(f.Links, atomLink{"next", "application/atom+xml", root + "/feed.atom" + queryOf(next)})
	}
	if found.Reading.Has(search.Stopped) {
		f.Said = texts["search.read.stopped"].in(r.lang)
	}
	f.Updated = stamp(timeOf(found.Position.Offset))
	for _, h := range found.Hits {
		a, err := h.Decode()
		if err != nil {
			return err
		}
		e := newEntry(r.lang, s.config.Names, root, a)
		if q.Sort == search.LatestPublished && e.Published != "" {
			e.Updated = e.Published
		}
		f.Entries = append(f.Entries, e)
	}
	return s.sendAtom(w, r, f)
}

// feedTitle returns the words and the filters of a search.
func (s *Site) feedTitle(l Lang, q search.Query, facets []search.Facet) string {
	said := []string{q.Text}
	for _, c := range chips(l, "/", q, facets) {
		said = append(said, c.Name+": "+c.Value)
	}
	if q.Sort == search.LatestPublished {
		said = append(said, texts["feed.new"].in(l))
	}
	return joined(" – ", codenames.Cut(joined("; ", said...), maxTitle), texts["site.name"].in(l))
}

// recordFeed answers with the newest public changes of a record.
func (s *Site) recordFeed(w http.ResponseWriter, r request) error {
	if err := s.takeReading(&r); err != nil {
		return err
	}
	defer func() { r.end() }()
	id, root, err := s.readAsset(r)
	if err != nil {
		return err
	}
	past := s.history(r.Context(), r.lang, id, 0)
	if past.State == noLog {
		return noPage(w, r)
	} else if len(past.Changes) == 0 {
		return Busy()
	}
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	page := r.base + assetPath(r.lang, id)
	title := codenames.Cut(root.string("title"), maxTitle)
	f := atom{
		Lang: string(r.lang), ID: page + "/feed.atom", Author: texts["site.name"].in(r.lang),
		Title: joined(" – ", title, texts["site.name"].in(r.lang)),
		Links: []atomLink{{"self", "application/atom+xml", page + "/feed.atom"}, {"alternate", "text/html", page}},
	}
	for _, c := range past.Changes {
		e := atomEntry{ID: page + "/changes/" + strconv.FormatInt(c.Revision, 10), Updated: stamp(c.At),
			Link: atomLink{"alternate", "text/html", page}, Category: categoryOf(r.lang, c.Status)}
		if c.Status != "" {
			e.Link.Href = e.ID
		}
		e.Title = texts["feed.changed"].in(r.lang) + ": " + title
		if said, isKnown := texts["changes."+c.Kind]; isKnown {
			e.Title = said.in(r.lang) + ": " + title
		}
		var labels []string
		for _, edit := range c.Edits {
			labels = append(labels, edit.Label)
		}
		e.Summary = joined("; ", labels...)
		f.Entries = append(f.Entries, e)
	}
	return s.sendAtom(w, r, f)
}

func categoryOf(l Lang, status client.Status) atomCategory {
	return atomCategory{string(status), word(l, "status", string(status))}
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// sendAtom answers with a feed, whose time is that of its first entry.
func (s *Site) sendAtom(w http.ResponseWriter, r request, f atom) error {
	if len(f.Entries) > 0 {
		f.Updated = f.Entries[0].Updated
	}
	text, err := xml.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return s.send(w, r, http.StatusOK, "application/atom+xml; charset=utf-8", append([]byte(xml.Header), text...))
}

// sureNew is the longest time between the publication of an asset and its last change for which it counts as new.
const sureNew = time.Minute

func newEntry(l Lang, names codenames.Lists, root string, a assetfilter.Asset) atomEntry {
	h := newHit(l, names, a)
	e := atomEntry{
		ID: uuid(a.ID), Title: texts["feed.changed"].in(l) + ": " + h.Title, Updated: stamp(h.Modified),
		Link:     atomLink{"alternate", "text/html", root + "/assets/" + a.ID},
		Category: categoryOf(l, a.Status),
		Summary:  joined(" · ", h.Lead, h.Class, h.Quantity, h.Place, h.Custodian),
	}
	if at := timeOf(a.Rectification.StartDate); !at.IsZero() {
		if e.Published = stamp(at); h.Modified.Sub(at) < sureNew {
			e.Title = texts["feed.new"].in(l) + ": " + h.Title
		}
	}
	return e
}

// uuid returns a URN for an id of 32 hexadecimal digits (RFC 9562).
func uuid(id string) string {
	if !assetID.MatchString(id) {
		return "urn:asset:" + id
	}
	return "urn:uuid:" + id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}
