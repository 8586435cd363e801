package site

import (
	"encoding/xml"
	"net/http"
	"time"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/fault"
	"asset-registry/shared/query"
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
// earlier.
func (s *Site) feed(w http.ResponseWriter, r request) error {
	if s.tagAt(w, r) {
		return notModified(w)
	}
	sent, faults := query.Read(r.URL.RawQuery, ofPage)
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
	q.Limit = search.DefaultLimit
	first := q
	if sort == q.Sort { // a cursor of another order means nothing here
		q.After = after
	}
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	defer r.end()
	found, err := s.config.Searcher.Search(r.Context(), q)
	if err != nil {
		return err
	}
	root := r.base + "/" + string(r.lang)
	f := atom{
		Lang: string(r.lang), ID: root + "/feed.atom" + queryOf(first), Author: texts["site.name"].in(r.lang),
		Title: joined(" – ", q.Text, texts["site.name"].in(r.lang)),
		Links: []atomLink{
			{"self", "application/atom+xml", root + "/feed.atom" + queryOf(q)},
			{"alternate", "text/html", root + "/" + queryOf(first)},
			{"first", "application/atom+xml", root + "/feed.atom" + queryOf(first)},
		},
	}
	if found.Next != nil {
		next := first
		next.After = found.Next
		f.Links = append(f.Links, atomLink{"next", "application/atom+xml", root + "/feed.atom" + queryOf(next)})
	}
	if found.Reading.Has(search.Stopped) {
		f.Said = texts["search.read.stopped"].in(r.lang)
	}
	updated := timeOf(found.Position.Offset)
	for i, h := range found.Hits {
		a, err := h.Decode()
		if err != nil {
			return err
		}
		if i == 0 {
			updated = timeOf(a.DateModified)
		}
		f.Entries = append(f.Entries, newEntry(r.lang, s.config.Names, root, a))
	}
	f.Updated = updated.UTC().Format(time.RFC3339Nano)
	text, err := xml.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return s.send(w, r, http.StatusOK, "application/atom+xml; charset=utf-8", append([]byte(xml.Header), text...))
}

func newEntry(l Lang, names codenames.Lists, root string, a search.Fields) atomEntry {
	h := newHit(l, names, a)
	e := atomEntry{
		ID: uuid(a.ID), Title: h.Title, Updated: h.Modified.UTC().Format(time.RFC3339Nano),
		Link:     atomLink{"alternate", "text/html", root + "/assets/" + a.ID},
		Category: atomCategory{string(a.Status), word(l, "status", string(a.Status))},
		Summary:  joined(" · ", h.Lead, h.Class, h.Quantity, h.Place, h.Custodian),
	}
	if at := timeOf(a.RectificationPeriod.StartDate); !at.IsZero() {
		e.Published = at.UTC().Format(time.RFC3339Nano)
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
