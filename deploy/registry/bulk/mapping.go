package bulk

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"asset-registry/shared/config"
)

// mappingVersion is the version of the format of mapping files.
const mappingVersion = "1"

// Values of the settings of a mapping.
const (
	utf8Encoding = "utf-8"
	cp1251       = "cp1251"
	dayFirst     = "DD.MM.YYYY"
)

// everyRest is the member of the setting skip that skips each row without title, area and file.
const everyRest = "*"

// constantSource begins the names of constants in faults.
const constantSource = "constant "

// Mapping says to which field of an asset each column of a table belongs (docs/import.md, "Mapping").
type Mapping struct {
	Version   string            `yaml:"version"`   // 1
	Delimiter string            `yaml:"delimiter"` // ",", ";" or "tab"; "": the one that the header has
	Encoding  string            `yaml:"encoding"`  // "utf-8" or "cp1251"; "": "utf-8"
	Decimal   string            `yaml:"decimal"`   // decimal sign of quantities and coordinates: "." or ","; "": "."
	Dates     string            `yaml:"dates"`     // "DD.MM.YYYY"; "": dates are in the form of the API
	Sheet     string            `yaml:"sheet"`     // name or number of the sheet; "": the first visible one
	Header    string            `yaml:"header"`    // number of the row with the names of the columns; "": 1
	Empty     string            `yaml:"empty"`     // "clear": an empty cell clears its field; "": the field stays
	Digits    string            `yaml:"digits"`    // "8": codes of EDRPOU get their leading zeros; "": they stay
	Skip      []string          `yaml:"skip"`      // beginnings of rows that are skipped; "*": rows without data
	Reference string            `yaml:"reference"` // name of the column with the broker's reference for the row
	Prefix    string            `yaml:"prefix"`    // text in front of each reference
	Files     string            `yaml:"files"`     // sign between the files in a cell; "": a cell has one file
	Columns   map[string]string `yaml:"columns"`   // header of a column -> paths of fields, with commas; "": it is ignored
	Constants map[string]string `yaml:"constants"` // path of a field -> value in every row
}

// ReadMapping reads a mapping from YAML. It returns all faults of the mapping.
func ReadMapping(in io.Reader) (Mapping, []Fault) {
	m := Mapping{}
	if err := config.ReadYAML(io.LimitReader(in, maxMapping), &m); err != nil {
		return m, []Fault{{Text: "the mapping is not YAML of the known fields: " + err.Error()}}
	}
	if m.Delimiter == "tab" {
		m.Delimiter = "\t"
	}
	m.Encoding = cmp.Or(strings.ToLower(m.Encoding), utf8Encoding)
	m.Decimal = cmp.Or(m.Decimal, ".")
	var faults []Fault
	for _, c := range []struct {
		name, value string
		accepted    []string
	}{
		{"version", m.Version, []string{mappingVersion}},
		{"delimiter", m.Delimiter, []string{"", ",", ";", "\t"}},
		{"encoding", m.Encoding, []string{utf8Encoding, cp1251}},
		{"decimal", m.Decimal, []string{".", ","}},
		{"dates", m.Dates, []string{"", dayFirst}},
		{"digits", m.Digits, []string{"", "8"}},
		{"empty", m.Empty, []string{"", "clear"}},
	} {
		if !slices.Contains(c.accepted, c.value) {
			says := fmt.Sprintf("mapping: %s must be one of %q, got %q", c.name, c.accepted, c.value)
			faults = append(faults, Fault{Text: says})
		}
	}
	columns := map[string]string{}
	for _, name := range sortedKeys(m.Columns) {
		if _, twice := columns[heading(name)]; twice {
			faults = append(faults, Fault{Column: name, Text: "the mapping names this column twice"})
		}
		columns[heading(name)] = m.Columns[name]
	}
	m.Columns, m.Reference = columns, heading(m.Reference)
	if slices.Contains(m.Skip, "") {
		faults = append(faults, Fault{Text: "mapping: skip must name words, or * for all rows without data"})
	}
	if n, err := strconv.Atoi(m.Header); m.Header != "" && (err != nil || n < 1 || n > maxHeader) {
		says := fmt.Sprintf("mapping: header must be the number of a row from 1 to %d, got %q", maxHeader, m.Header)
		faults = append(faults, Fault{Text: says})
	}
	if m.Reference == "" {
		faults = append(faults, Fault{Text: "mapping: reference must name the column that tells the rows apart"})
	}
	_, wrong := m.tree(nil)
	return m, append(faults, wrong...)
}

// headerRow returns the number of the row with the names of the columns.
func (m Mapping) headerRow() int {
	n, _ := strconv.Atoi(cmp.Or(m.Header, "1")) // ReadMapping has checked it
	return n
}

const (
	maxHeader   = 100     // the greatest number of the row with the names of the columns
	maxMapping  = 1 << 20 // bytes of a mapping file
	maxElements = 100     // elements of one list in an asset
	maxSteps    = 16      // steps of a path
	documents   = "documents"
	fileField   = "file" // member of a document that has the path of its file in the folder
)

// node is a place in the asset that a mapping makes: a field, an object or a list. A node without children and
// without a leaf is the root of an empty mapping.
type node struct {
	name     string // name of the member, or its index in the list
	list     bool   // the children are elements of a list
	children []*node
	leaf     *leaf
}

// leaf says where the text of a field comes from.
type leaf struct {
	source   string // how faults name the column or the constant
	column   int    // index of the column; -1: a constant
	constant string
}

// tree returns the tree of the asset that the mapping makes. The columns are found in header. If header is nil, the
// mapping is checked as if the header had every column that the mapping names.
func (m Mapping) tree(header []string) (*node, []Fault) {
	root := &node{}
	var faults []Fault
	for _, path := range sortedKeys(m.Constants) {
		source := constantSource + path
		if err := root.add(path, leaf{source, -1, m.Constants[path]}); err != "" {
			faults = append(faults, Fault{Column: source, Text: err})
		}
	}
	for _, name := range sortedKeys(m.Columns) {
		at := slices.Index(header, name)
		if m.Columns[name] == "" || header != nil && at < 0 {
			continue
		}
		for path := range strings.SplitSeq(m.Columns[name], ",") {
			if err := root.add(strings.TrimSpace(path), leaf{name, max(at, 0), ""}); err != "" {
				faults = append(faults, Fault{Column: name, Text: err})
			}
		}
	}
	return root, append(faults, root.dense("")...)
}

// add adds the nodes of a path and their leaf. It returns what is wrong with the path, or "".
func (n *node) add(path string, l leaf) string {
	steps := strings.Split(path, ".")
	if len(steps) > maxSteps {
		return fmt.Sprintf("the path %s has more than %d steps", quoted(path), maxSteps)
	}
	for _, step := range steps {
		if step == "" {
			return fmt.Sprintf("the path %s has an empty step", quoted(path))
		}
		index, err := strconv.Atoi(step)
		isIndex := err == nil && index >= 0 && strconv.Itoa(index) == step
		if isIndex && index >= maxElements {
			return fmt.Sprintf("the path %s names element %d of a list: at most %d are mapped", quoted(path), index, maxElements)
		}
		if n.leaf != nil || len(n.children) > 0 && n.list != isIndex {
			return fmt.Sprintf("the path %s does not fit to another one of the mapping", quoted(path))
		}
		n.list = isIndex
		at := slices.IndexFunc(n.children, func(c *node) bool { return c.name == step })
		if at < 0 {
			n.children = append(n.children, &node{name: step})
			at = len(n.children) - 1
		}
		n = n.children[at]
	}
	if n.leaf != nil || len(n.children) > 0 {
		return fmt.Sprintf("the path %s is there twice", quoted(path))
	}
	n.leaf = &l
	return ""
}

// lists collects, for the lists under the node, the names of the elements that a row takes, by their paths.
func (n *node) lists(path string, taken map[*node][]string, found map[string][]string) {
	if names := taken[n]; len(names) > 0 && path != documents {
		found[path] = names
	}
	for _, c := range n.children {
		at := c.name
		if i := slices.Index(taken[n], at); n.list {
			at = strconv.Itoa(i)
		}
		c.lists(join(path, at), taken, found)
	}
}

// dense sorts the elements of each list by index. It returns a fault for each list in which an index is
// missing.
func (n *node) dense(path string) (faults []Fault) {
	if n.list {
		slices.SortFunc(n.children, func(a, b *node) int { return index(a) - index(b) })
		for i, c := range n.children {
			if index(c) != i {
				says := fmt.Sprintf("mapping: the list %s begins at 0 and leaves no number out: %d is missing", path, i)
				faults = append(faults, Fault{Text: says})
				break
			}
		}
	}
	for _, c := range n.children {
		faults = append(faults, c.dense(join(path, c.name))...)
	}
	return faults
}

// index returns the index of an element.
func index(n *node) int {
	i, _ := strconv.Atoi(n.name) // add() has checked that it is a number
	return i
}

// The method `at` returns the source of the value at a path: the leaf at the path, or the leaf of one of its parents.
// If the mapping has no such leaf, it returns the name of the field. In lists with names in the argument `taken`, a
// number of the path stands for the element of this name.
func (n *node) at(path string, taken map[*node][]string) string {
	for step := range strings.SplitSeq(path, ".") {
		if n.leaf != nil {
			break
		}
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(taken[n]) {
			step = taken[n][i]
		}
		next := slices.IndexFunc(n.children, func(c *node) bool { return c.name == step })
		if next < 0 {
			return "field " + path
		}
		n = n.children[next]
	}
	if n.leaf == nil {
		return "field " + path
	}
	return n.leaf.source
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
