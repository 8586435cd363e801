package site

import (
	"regexp"
	"slices"
	"strconv"

	"asset-registry/searchsvc/internal/codenames"
)

// maxEdits is the largest number of edits of one change that a page lists.
const maxEdits = 40

// maxQuoted is the largest number of characters of a value that a change quotes.
const maxQuoted = 300

// edit is one difference between two states of a record.
type edit struct {
	Label         string
	Before, After *part // nil: the value did not exist before, or does not exist after
}

// edits compares two states of a record. The result `more` is the number of differences beyond maxEdits. The
// comparison ignores dateModified, which differs in every change, and date, which differs in every change of the
// state.
func edits(l Lang, before, after *value) (list []edit, more int64) {
	c := comparison{l: l}
	c.compare("", before, after)
	return c.list, c.more
}

// comparison collects edits.
type comparison struct {
	l    Lang
	list []edit
	more int64
}

func (c *comparison) compare(path string, before, after *value) {
	switch {
	case path == "date" || path == "dateModified":
	case before == nil && isDocument.MatchString(path):
		c.addDocument(path, after)
	case before == nil:
		after.leaves(path, func(path string, leaf *value) { c.add(path, nil, leaf) })
	case after == nil:
		before.leaves(path, func(path string, leaf *value) { c.add(path, leaf, nil) })
	case before.isObject() && after.isObject():
		for _, m := range before.members {
			c.compare(join(path, m.name), m.value, after.get(m.name))
		}
		for _, m := range after.members {
			if before.get(m.name) == nil {
				c.compare(join(path, m.name), nil, m.value)
			}
		}
	case before.isScalar() && after.isScalar():
		if before.text != after.text || before.kind != after.kind {
			c.add(path, before, after)
		}
	case before.kind == after.kind: // lists
		for i, pair := range pairs(before.elements, after.elements) {
			c.compare(join(path, strconv.Itoa(i)), pair[0], pair[1])
		}
	default:
		c.compare(path, before, nil)
		c.compare(path, nil, after)
	}
}

// pairs returns pairs of an element of the list `before` and an element of the list `after`. The elements of a pair
// have the same id. If an id is missing, or not unique in its list, they have the same index instead. An element of a
// pair is nil if its list has no such element.
func pairs(before, after []*value) [][2]*value {
	was, distinctBefore := byID(before)
	is, distinctAfter := byID(after)
	var all [][2]*value
	if !distinctBefore || !distinctAfter {
		for i := range max(len(before), len(after)) {
			var pair [2]*value
			if i < len(before) {
				pair[0] = before[i]
			}
			if i < len(after) {
				pair[1] = after[i]
			}
			all = append(all, pair)
		}
		return all
	}
	for _, a := range after {
		all = append(all, [2]*value{was[a.string("id")], a})
	}
	for _, b := range before {
		if is[b.string("id")] == nil {
			all = append(all, [2]*value{b, nil})
		}
	}
	return all
}

// byID returns the elements of a list in a map whose keys are ids. The result `distinct` reports whether each element
// has an id, and no two elements have the same id.
func byID(list []*value) (all map[string]*value, distinct bool) {
	all = make(map[string]*value, len(list))
	for _, e := range list {
		all[e.string("id")] = e
	}
	return all, len(all) == len(list) && all[""] == nil
}

// noise are fields that the registry sets itself, so a list of changes leaves them out.
var noise = []string{
	"items.id", "decisions.id", "documents.id", "relatedProcesses.id", "decisions.decisionOf", "documents.documentOf",
	"documents.author", "documents.dateModified", "documents.datePublished",
}

func (c *comparison) add(path string, before, after *value) {
	if slices.Contains(noise, withoutIndexes(path)) {
		return
	}
	if len(c.list) == maxEdits {
		c.more++
		return
	}
	c.list = append(c.list, edit{codenames.Cut(chain(c.l, path), maxQuoted), c.quote(path, before), c.quote(path, after)})
}

// isDocument matches the path of a whole document.
var isDocument = regexp.MustCompile(`^documents\.[0-9]+$`)

// addDocument adds an edit for a new document or version, with its title and its kind.
func (c *comparison) addDocument(path string, document *value) {
	title := cursor{l: c.l, v: document, path: path}.repeat("title")
	if title.Path == "" {
		title.Text = texts["asset.untitled"].in(c.l)
	}
	if kind := document.string("documentType"); kind != "" {
		title.Text += " (" + word(c.l, "documentType", kind) + ")"
	}
	if len(c.list) == maxEdits {
		c.more++
		return
	}
	said := part{Text: codenames.Cut(title.Text, maxQuoted), Lang: title.Lang}
	c.list = append(c.list, edit{Label: chain(c.l, path), After: &said})
}

// quote returns the text of a value for a list of changes. The result has no path, because this value does not
// belong to the record on the page.
func (c *comparison) quote(path string, v *value) *part {
	if v == nil {
		return nil
	}
	p := newPart(c.l, path, v)
	p.Text, p.Path, p.Value, p.Href, p.Spans = codenames.Cut(p.Text, maxQuoted), "", "", "", nil
	return &p
}
