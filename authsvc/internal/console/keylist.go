package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// keyList is the body of the page of all keys.
type keyList struct {
	list
	State  string // value of the parameter "state"; "": all keys that are not revoked
	Tabs   []tab
	Orders []column // orders to choose from on narrow screens, where the table has no headings
	Rows   keyRows
}

// Narrow reports whether the search selects only a part of the keys that are not revoked.
func (l keyList) Narrow() bool { return l.Text() != "" || l.Broker() != "" || l.State != "" }

// Revoked returns the path of the list of revoked keys, if the search would also find revoked keys but does not show
// them. Otherwise it returns "".
func (l keyList) Revoked() string {
	for _, t := range l.Tabs {
		if l.State == "" && t.Label == adminapi.Revoked && t.Count > 0 {
			return t.Path
		}
	}
	return ""
}

// tab is a link to the list of keys in some states.
type tab struct {
	Label, Path string
	Count       int
	Current     bool
}

// anyState is the value of the parameter "state" that selects all keys.
const anyState = "any"

// statesOf returns the states that a value of the parameter "state" selects.
func statesOf(state string) []string {
	switch state {
	case anyState:
		return nil
	case "":
		return slices.DeleteFunc(adminapi.States(), func(s string) bool { return s == adminapi.Revoked })
	}
	return []string{state}
}

// tabs returns the tabs of a list. Each tab shows how many keys are in its state. A state without keys has no
// tab.
func tabs(l list, state string, counts map[string]int) []tab {
	all := tab{Label: "all", Path: l.with("state", anyState), Current: state == anyState}
	for _, n := range counts {
		all.Count += n
	}
	found := []tab{{
		Label: "not revoked", Path: l.with("state", ""), Current: state == "",
		Count: all.Count - counts[adminapi.Revoked],
	}}
	for _, s := range adminapi.States() {
		if counts[s] > 0 || s == state {
			found = append(found, tab{s, l.with("state", s), counts[s], s == state})
		}
	}
	return append(found, all)
}

// keyRows is a table of keys.
type keyRows struct {
	Columns []column
	Keys    []adminapi.Key
}

// column is a column of a table, or an order in which the table can be sorted.
type column struct {
	Label, Order string
	Path         string // path that sorts the table by the column; "": the column cannot be sorted
	Sorted       string // value of aria-sort; "": the table is not sorted by the column
}

// keyColumns returns the columns of a table of keys, without the paths that sort the table.
func keyColumns() []column {
	return []column{
		{Label: "Name", Order: admin.ByName}, {Label: "Broker", Order: admin.ByBroker}, {Label: "Role and levels"},
		{Label: "State"}, {Label: "Created", Order: admin.ByCreated}, {Label: "Last used", Order: admin.ByUsed},
		{Label: "Expires", Order: admin.ByExpiry},
	}
}

// sortedColumns returns the columns of a list, each with the path that sorts by it. A
// second click on a column reverses its order.
func sortedColumns(l list, order string, reverse bool) []column {
	columns := keyColumns()
	for i := range columns {
		c := &columns[i]
		if c.Order == "" {
			continue
		}
		c.Path = l.with("sort", c.Order)
		if c.Order != order {
			continue
		}
		newestFirst := order == admin.ByCreated || order == admin.ByUsed
		c.Sorted = "ascending"
		if newestFirst != reverse {
			c.Sorted = "descending"
		}
		if !reverse {
			c.Path = l.with("sort", "-"+c.Order)
		}
	}
	return columns
}

func (c *Console) listKeys(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	l, err := listOf(r, "q", "broker", "state", "sort")
	if err != nil {
		return err
	}
	state := l.query.Get("state")
	order, reverse := strings.CutPrefix(cmp.Or(l.query.Get("sort"), admin.KeyOrders()[0]), "-")
	found, err := c.Admin.FindKeys(r.Context(), admin.KeyQuery{
		Text: strings.TrimSpace(l.Text()), Broker: l.Broker(), States: statesOf(state),
		Order: order, Reverse: reverse, Skip: l.Skip, Limit: listed,
	})
	if err != nil {
		return err
	}
	l.Skip, l.Shown, l.Total, l.Cut = found.Skip, len(found.Keys), found.Total, found.Cut
	columns := sortedColumns(l, order, reverse)
	body := keyList{list: l, State: state, Tabs: tabs(l, state, found.States), Rows: keyRows{columns, found.Keys}}
	for _, column := range columns {
		if column.Order != "" {
			body.Orders = append(body.Orders, column)
		}
	}
	return c.show(w, http.StatusOK, "keys", view{Title: "Keys", Section: "keys", By: by, Body: body})
}

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
