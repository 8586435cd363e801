package console

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/fault"
)

const listed = 25 // maximum number of keys, brokers or entries on a page

// list is one page of the result of a search, with the parameters of the search.
type list struct {
	path  string
	query url.Values // parameters of the search, without the number of the page

	Skip, Shown, Total int
	Cut                bool // the registry has more elements than a search reads
}

// Text returns the text for which the user searches.
func (l list) Text() string { return l.query.Get("q") }

// Broker returns the broker for whose keys the user searches.
func (l list) Broker() string { return l.query.Get("broker") }

// First returns the number of the page's first element.
func (l list) First() int { return l.Skip + 1 }

// Last returns the number of the page's last element.
func (l list) Last() int { return l.Skip + l.Shown }

// Most returns the maximum number of elements that a search reads.
func (l list) Most() int64 { return admin.MaxFound }

// Previous returns the path of the previous page; "" on the first page.
func (l list) Previous() string {
	if l.Skip == 0 {
		return ""
	}
	return l.page(l.Skip/listed - 1)
}

// Next returns the path of the next page; "" on the last page.
func (l list) Next() string {
	if l.Last() >= l.Total {
		return ""
	}
	return l.page(l.Skip/listed + 1)
}

func (l list) page(n int) string {
	if n == 0 {
		return l.with("", "")
	}
	return l.with("page", strconv.Itoa(n+1))
}

// The method `with` returns the path of the first page of the same search, but with a different value of one
// parameter. An empty value removes the parameter.
func (l list) with(name, value string) string {
	q := maps.Clone(l.query)
	q.Set(name, value)
	for name, values := range q {
		if values[0] == "" {
			delete(q, name)
		}
	}
	if len(q) == 0 {
		return l.path
	}
	return l.path + "?" + q.Encode()
}

// listOf returns the list for which a request asks. The list keeps the named parameters of the request. listOf sets
// the number of elements before the page, but does not search yet.
func listOf(r *http.Request, parameters ...string) (list, error) {
	sent := r.URL.Query()
	l := list{path: r.URL.Path, query: url.Values{}}
	for _, name := range parameters {
		if value := sent.Get(name); value != "" {
			l.query.Set(name, value)
		}
	}
	if text := sent.Get("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > admin.MaxFound {
			return l, fault.New(fault.Invalid, fault.Query, "page", "Send the number of a page.")
		}
		l.Skip = (n - 1) * listed
	}
	return l, nil
}
