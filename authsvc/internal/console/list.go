package console

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/fault"
)

const listed = 25 // most keys, brokers or entries of a page

// list is a page of a longer list, with the search that made it.
type list struct {
	path  string
	query url.Values // of the search, without the page

	Skip, Shown, Total int
	Cut                bool // the list is longer than a search reads
}

// Text returns what the user searches for.
func (l list) Text() string { return l.query.Get("q") }

// Broker returns the broker that the user searches for.
func (l list) Broker() string { return l.query.Get("broker") }

// First and Last return the numbers of the page's first and last element.
func (l list) First() int { return l.Skip + 1 }

// Last returns the number of the page's last element.
func (l list) Last() int { return l.Skip + l.Shown }

// Most returns the most elements that a search reads.
func (l list) Most() int64 { return admin.MaxFound }

// Previous returns the path of the page before; "" on the first page.
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

// with returns the path of the search's first page with another value of a parameter; ""
// removes it.
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

// listOf returns the list that a request asks for, with the named parameters as search. It
// has the elements before the page, and no result yet.
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
