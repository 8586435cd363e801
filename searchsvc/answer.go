package searchsvc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry.example/client"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/searchsvc/internal/site"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/query"
	"asset-registry/shared/routes"
	"asset-registry/shared/static"
)

// Path is the path of a search as the gateway requests it, in the newest version of the API.
const Path = "/api/" + routes.Current + routes.Search

// envelope is the answer to a search (docs/contract.md, "Search").
type envelope struct {
	Data     []json.RawMessage          `json:"data"`
	Total    int64                      `json:"total"`
	Position client.Timestamp           `json:"position"`
	Facets   map[search.FacetName]facet `json:"facets,omitempty"`
	Next     *nextPage                  `json:"next_page,omitempty"`
	Read     *interpreted               `json:"interpreted,omitempty"`
}

// interpreted says how the search read the words of a question. An answer has it only if newInterpreted returns it.
type interpreted struct {
	Steps    []search.Step `json:"steps"`
	Used     []string      `json:"used"`
	LeftOut  []string      `json:"left_out"`
	Replaced []replaced    `json:"replaced"`
	NotFound []string      `json:"not_found"` // words that no asset has; empty if something was found
	Range    *search.Range `json:"range,omitempty"`
}

type replaced struct {
	Word string `json:"word"`
	By   string `json:"by"`
}

// newInterpreted says how a question was read. It returns nil if the question was read as it is written, has no range
// in words, and found something.
func newInterpreted(r search.Result) *interpreted {
	if !r.Reading.IsAnother() && len(r.NotFound) == 0 && r.Range.Words == "" {
		return nil
	}
	read := &interpreted{
		Steps: append([]search.Step{}, r.Reading.Steps...), Used: append([]string{}, r.Reading.Used()...),
		LeftOut: append([]string{}, r.Reading.LeftOut()...), Replaced: []replaced{},
		NotFound: append([]string{}, r.NotFound...),
	}
	for _, w := range r.Reading.Replaced() {
		read.Replaced = append(read.Replaced, replaced{w.Text, w.Said})
	}
	if r.Range.Words != "" {
		read.Range = &r.Range
	}
	return read
}

type facet struct {
	Values []count `json:"values"`
	More   bool    `json:"more,omitempty"`
}

type count struct {
	Value  string `json:"value"`
	Name   string `json:"name,omitempty"`
	NameEn string `json:"name_en,omitempty"`
	Count  int64  `json:"count"`
}

type nextPage struct {
	After string `json:"search_after"`
	Path  string `json:"path"`
	URI   string `json:"uri"`
}

// answer answers a search.
func (s *Server) answer(c *gin.Context) error {
	values, faults := readQuery(c, search.OfAPI)
	q, err := search.Parse(values, nil, faults...)
	if err != nil {
		return err
	}
	contentType, body, err := s.encoded(c, q, values)
	if err != nil {
		return err
	}
	return site.Send(c.Writer, c.Request, s.answers, http.StatusOK, contentType, body)
}

// readQuery returns the parameters of a request, and the faults of its query string and of its opt_jsonp.
func readQuery(c *gin.Context, of query.Params) (url.Values, []fault.Detail) {
	values, faults := query.Read(c.Request.URL.RawQuery, of)
	if f, isFaulty := errors.AsType[*fault.Error](httpserver.CheckCallback(values.Get("opt_jsonp"))); isFaulty {
		faults = append(faults, f.Details...)
	}
	return values, faults
}

// encoded returns the encoded answer to a question. It waits for a turn (search.Searcher), so that few answers
// are made at the same time.
func (s *Server) encoded(c *gin.Context, q search.Query, values url.Values) (
	contentType string, body []byte, err error,
) {
	ctx := c.Request.Context()
	end, err := s.Turn(ctx, c.GetHeader(httpserver.CallerHeader))
	if err != nil {
		return "", nil, err
	}
	defer end()
	result, err := s.Search(ctx, q)
	if err != nil {
		return "", nil, err
	}
	if body, err = json.Marshal(view(q, result, c.GetHeader(httpserver.BaseURLHeader))); err != nil {
		return "", nil, fmt.Errorf("encode the answer: %w", err)
	}
	return dressed(body, values)
}

// view returns the answer to a question, ready to be encoded. Links to the next page begin with the argument `base`.
func view(q search.Query, r search.Result, base string) envelope {
	e := envelope{Data: []json.RawMessage{}, Total: r.Total, Position: r.Position.Offset, Read: newInterpreted(r)}
	for _, hit := range r.Hits {
		e.Data = append(e.Data, hit.Asset)
	}
	for _, f := range r.Facets {
		if e.Facets == nil {
			e.Facets = map[search.FacetName]facet{}
		}
		counts := []count{}
		for _, v := range f.Values {
			counts = append(counts, count{v.Value, v.Name, v.NameEn, v.Count})
		}
		e.Facets[f.Name] = facet{counts, f.More}
	}
	if r.Next != nil {
		q.After = r.Next
		path := Path + "?" + q.Values().Encode()
		e.Next = &nextPage{After: r.Next.String(), Path: path, URI: base + path}
	}
	return e
}

// dressed returns an answer in the form that the parameters of a request ask for, such as JSONP.
func dressed(body []byte, values url.Values) (contentType string, dressed []byte, err error) {
	contentType, callback := "application/json", values.Get("opt_jsonp")
	if values.Get("opt_pretty") != "" {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "    "); err != nil {
			return "", nil, fmt.Errorf("indent the answer: %w", err)
		}
		body = indented.Bytes()
	}
	body = append(body, '\n')
	if callback != "" {
		contentType, body = httpserver.Script(callback, body)
	}
	return contentType, body, nil
}

// suggestPath is the path of suggestions as the gateway requests it.
const suggestPath = "/api/" + routes.Current + routes.Suggest

// suggest answers with texts that continue the last words of a question (docs/contract.md, "Search").
func (s *Server) suggest(c *gin.Context) error {
	values, faults := readQuery(c, search.OfSuggestions)
	q, err := search.Parse(values, nil, faults...)
	if err != nil {
		return err
	}
	q.Text = strings.TrimLeft(values.Get("q"), " ") // a blank at its end ends its last word
	end, err := s.Turn(c.Request.Context(), c.GetHeader(httpserver.CallerHeader))
	if err != nil {
		return err
	}
	defer end()
	found, err := s.keeper.suggest(c.Request.Context(), q)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string][]string{"data": append([]string{}, found...)})
	if err != nil {
		return fmt.Errorf("encode the suggestions: %w", err)
	}
	contentType, body, err := dressed(body, values)
	if err != nil {
		return err
	}
	end() // a slow client must not hold the turn
	return site.Send(c.Writer, c.Request, s.answers, http.StatusOK, contentType, body)
}

// dictionariesPath is the path of the dictionaries as the gateway requests it.
const dictionariesPath = "/api/" + routes.Current + routes.Dictionaries

// newDictionaries returns the lists of values with their names (docs/contract.md, "Dictionaries"). They do not
// change while the program runs.
func newDictionaries(names codenames.Lists) (*static.File, error) {
	body, err := json.Marshal(map[string]any{"data": site.Dictionaries(names)})
	if err != nil {
		return nil, fmt.Errorf("encode the dictionaries: %w", err)
	}
	return static.New("application/json", "no-cache", append(body, '\n')), nil
}
