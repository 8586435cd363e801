package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path"
	"slices"
	"time"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/shared/routes"
)

// dataPath is the last part of the path of the page about whole copies; the first part is the language. dataPath
// alone redirects to the page in the language of the browser.
const dataPath = routes.Data

// dataPage is the body of the page about whole copies (docs/data.md, "The catalogue").
type dataPage struct {
	Base      string
	Catalogue string       // path of the catalogue
	Publisher string       // "": not known
	Licence   template.URL // "": none
	Files     []dataFile
	At        time.Time // time of the copies; zero: there are no copies
	Every     string    // time between two copies; "": not known
	IsEarly   bool      // the copies are empty, but the search has assets: the first ones are being made
}

// dataFile is one whole copy.
type dataFile struct {
	Name, Path, Schema string // Schema is a path, or ""
	Rows               int64
	Size, SHA256       string
}

// anyData redirects to the page in the language of the request.
func anyData(w http.ResponseWriter, r request) error {
	return redirect(w, r, "/"+string(r.lang)+dataPath, nil)
}

// data shows the newest whole copies.
func (s *Site) data(w http.ResponseWriter, r request) error {
	if err := s.takeReading(&r); err != nil {
		return err
	}
	defer r.end()
	p := dataPage{Base: r.base, Catalogue: routes.Catalogue}
	c, err := s.registry.catalogue(r.Context())
	switch {
	case errors.Is(err, errNoCopies):
	case err != nil:
		return err
	default:
		p.fill(r, c)
	}
	isEmpty := !slices.ContainsFunc(p.Files, func(f dataFile) bool { return f.Rows > 0 })
	if isEmpty && len(p.Files) > 0 && s.config.Searcher.State().Assets > 0 {
		p.Files, p.IsEarly = nil, true
	}
	v := s.view(r, texts["data.title"].in(r.lang), p)
	v.About, v.Section = texts["data.about"].in(r.lang), "data"
	return s.show(w, r, http.StatusOK, "data", v)
}

// fill adds the values of a catalogue. It shortens each text, and checks the address of the licence.
func (p *dataPage) fill(r request, c catalogue) {
	p.Licence, p.Publisher = safeLink(c.Licence.ID), codenames.Cut(c.Publisher.Name, maxTitle)
	p.At = timeOf(client.Timestamp(c.Modified.Value))
	for _, d := range c.Dataset {
		if minutes := d.Often.Value / 60; minutes > 0 && minutes%60 == 0 {
			p.Every = counted(r.lang, "hour", minutes/60)
		} else if minutes > 0 {
			p.Every = counted(r.lang, "minute", minutes)
		}
		for _, f := range d.Distribution {
			name := path.Base(f.Download.ID)
			file := dataFile{
				Name: name, Path: dataPath + "/" + name, Rows: f.Extent.Value, Size: size(r.lang, f.Bytes.Value),
				SHA256: codenames.Cut(f.Checksum.Value.Value, maxTitle),
			}
			if f.Conforms.ID != "" {
				file.Schema = dataPath + "/" + path.Base(f.Conforms.ID)
			}
			if _, isKnown := texts["data.file."+name]; isKnown {
				p.Files = append(p.Files, file)
			}
		}
	}
}

// errNoCopies is returned if the registry has no whole copies.
var errNoCopies = errors.New("the registry has no whole copies")

type identified struct {
	ID string `json:"@id"`
}

type literal struct {
	Value string `json:"@value"`
}

// catalogue has the fields of a catalogue (DCAT-AP) that the page shows.
type catalogue struct {
	Modified  literal    `json:"dct:modified"`
	Licence   identified `json:"dct:license"`
	Publisher struct {
		Name string `json:"foaf:name"`
	} `json:"dct:publisher"`
	Dataset []struct {
		Often struct {
			Value int64 `json:"rdf:value"` // seconds
		} `json:"dct:accrualPeriodicity"`
		Distribution []struct {
			Download identified `json:"dcat:downloadURL"`
			Conforms identified `json:"dct:conformsTo"`
			Bytes    literal    `json:"dcat:byteSize"`
			Extent   struct {
				Value int64 `json:"rdf:value"`
			} `json:"dct:extent"`
			Checksum struct {
				Value literal `json:"spdx:checksumValue"`
			} `json:"spdx:checksum"`
		} `json:"dcat:distribution"`
	} `json:"dcat:dataset"`
}

// catalogue reads the catalogue of the newest whole copies. A mirror has none.
func (r *registry) catalogue(ctx context.Context) (c catalogue, err error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+routes.Catalogue, nil)
	if err != nil {
		return c, err
	}
	resp, err := r.http.Do(ask)
	if err != nil {
		return c, asFault(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMisdirectedRequest:
		return c, errNoCopies
	default:
		return c, asFault(fmt.Errorf("the catalogue: status %d", resp.StatusCode))
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return c, asFault(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("read the catalogue: %w", err)
	}
	return c, nil
}
