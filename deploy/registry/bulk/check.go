package bulk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"asset-registry.example/client"
	"asset-registry/assetsvc/rehearse"
)

// Checked is a file whose rows have no faults.
type Checked struct {
	Rows      int
	Documents int
	Warnings  int
	Skipped   int      // rows that the mapping skips
	Header    []string // names of the columns of a table
	kinds     []kind
	sums      map[string]string // hash of each row, by its reference
}

// kind is the type that a row gives its asset, as the text of a fault.
type kind struct {
	Fault
	reference string
	isTest    bool
}

// Barred returns a fault for each row that the registry does not admit: the argument `dictionaries` is its answer about
// the types of assets, and `levels` are those of the API key, which only new assets need. Without types in the answer,
// each type passes.
func (c Checked) Barred(dictionaries []byte, levels string, isKnown func(reference string) bool) (faults []Fault) {
	of, types := leaves(dictionaries), []string{}
	for _, path := range paths(of) {
		list, isValue := strings.CutSuffix(path, ".value")
		if list, _, _ = strings.Cut(list, ".values."); isValue && of[list+".id"] == "assetType" {
			types = append(types, of[path].(string))
		}
	}
	for _, k := range c.kinds {
		isNew := !isKnown(k.reference)
		switch {
		case len(types) > 0 && !slices.Contains(types, k.Text):
			k.Text = fmt.Sprintf("this registry takes the types %s, got %q", strings.Join(types, ", "), k.Text)
		case isNew && !strings.ContainsAny(levels, "03"):
			k.Text = "the API key lacks the level 3, so it creates no asset"
		case isNew && strings.Contains(levels, "t") && !k.isTest:
			k.Text = "the API key has the level t, so it creates assets in test mode only"
		default:
			continue
		}
		faults = append(faults, k.Fault)
	}
	return faults
}

// Check reads all rows, and calls the function `tell` for each finding. It sends no request. The result `ok` is false
// if there is a fault.
func Check(s Source, files *Folder, tell func(Finding)) (c Checked, ok bool, err error) {
	ok = true
	var row Row
	report := func(faults ...Fault) {
		for _, f := range faults {
			ok = false
			tell(Finding{f, Refusal, row.cells})
		}
	}
	s.files = files
	rows, faults, err := s.open()
	report(faults...)
	if err != nil && !errors.Is(err, errBroken) || rows == nil || !ok {
		return c, ok, ignoreBroken(err)
	}
	if t, isTable := rows.(*table); isTable {
		c.Header = t.header
	}
	c.sums = map[string]string{}
	seen := map[string]int{}
	for {
		var faults []Fault
		var err error
		row, faults, err = rows.next()
		for _, f := range row.found {
			if f.Row == row.Number {
				f.Cells = row.cells
			}
			switch f.Level {
			case Warning:
				c.Warnings++
			case Skipped:
				c.Skipped++
			}
			ok = ok && f.Level != Refusal
			tell(f)
		}
		report(faults...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, ok, ignoreBroken(err)
		}
		c.Rows++
		if len(faults) > 0 {
			continue
		}
		report(row.referenceFaults(seen)...)
		report(row.faults(s.Known != nil && s.Known(row.Reference))...)
		report(row.documentFaults()...)
		report(row.fileFaults(files)...)
		c.Documents += len(row.Documents)
		if !ok {
			continue
		}
		sums, err := row.sums()
		if err != nil {
			return c, ok, err
		}
		c.sums[row.Reference] = sums.Same
		values := leaves(row.asset)
		if of, ok := values["assetType"].(string); ok {
			told := Fault{row.Number, row.column("assetType"), of}
			c.kinds = append(c.kinds, kind{told, row.Reference, values["mode"] == "test"})
		}
	}
	if c.Rows == 0 && ok {
		report(Fault{Text: "the file has no rows"})
	}
	return c, ok, nil
}

// ignoreBroken returns nil for errBroken, because Check has already reported the reason as a fault. It returns
// other errors unchanged.
func ignoreBroken(err error) error {
	if errors.Is(err, errBroken) {
		return nil
	}
	return err
}

// maxReference is the greatest length of a reference (docs/contract.md, "Own references").
const maxReference = 200

// referenceFaults checks the reference of the row. The map `seen` has the number of the row for each earlier reference.
// If the reference has no faults, referenceFaults adds it to seen.
func (r Row) referenceFaults(seen map[string]int) []Fault {
	says := ""
	switch {
	case r.Reference == "":
		says = "the row has no reference"
	case len(r.Reference) > maxReference:
		const most = "a reference has at most %d characters; a Cyrillic letter counts as 6, and a blank as 3"
		says = fmt.Sprintf(most, maxReference)
	case seen[r.Reference] > 0:
		says = fmt.Sprintf("row %d has the same reference", seen[r.Reference])
	default:
		seen[r.Reference] = r.Number
		return nil
	}
	return []Fault{{r.Number, "reference", fmt.Sprintf("%s: got %s", says, quoted(ReadReference(r.Reference)))}}
}

// noDate begins the registry's text about a date that it cannot read.
const noDate = "Could not parse "

// fault returns a fault of the registry, in the words of the table.
func (r Row) fault(path, says string) Fault {
	if sent, ok := strings.CutPrefix(says, noDate); ok && r.dates != "" {
		sent, _, _ = strings.Cut(sent, ". Should be ISO8601")
		says = sent + " is no date of the form " + r.dates
	}
	return Fault{r.Number, r.column(path), says}
}

// isMissing are the registry's texts about an asset that lacks fields (docs/contract.md, "Change").
func isMissing(says string) bool {
	return says == "This field is required." || strings.HasPrefix(says, "You cannot switch the asset status")
}

// faults checks the asset of the row by the rules of the registry. A cell that has a fault already gets no other one.
// A row that is known may lack fields: its asset has them.
func (r Row) faults(isKnown bool) (faults []Fault) {
	for _, f := range rehearse.Asset(r.asset) {
		if isKnown && isMissing(f.Text) {
			continue
		}
		told := r.fault(f.Name, f.Text)
		isTold := func(o Finding) bool { return o.Level == Refusal && o.Column == told.Column }
		if !slices.ContainsFunc(r.found, isTold) && !slices.Contains(faults, told) {
			faults = append(faults, told)
		}
	}
	if size := len(r.asset) + len(`{"data":}`); size > maxBody {
		says := fmt.Sprintf("the asset has %d bytes: at most %d are taken", size, maxBody)
		faults = append(faults, Fault{Row: r.Number, Text: says})
	}
	return faults
}

// documentFaults checks the documents of the row by the rules of the registry.
func (r Row) documentFaults() (faults []Fault) {
	seen := map[string]bool{}
	for i, d := range r.Documents {
		at := fmt.Sprintf("%s.%d", documents, i)
		fields, twice := d.sent()
		for _, name := range twice {
			faults = append(faults, Fault{r.Number, r.column(join(at, name)), "a document has either a file or this field"})
		}
		text, err := json.Marshal(fields)
		if err != nil {
			faults = append(faults, Fault{r.Number, at, err.Error()})
			continue
		}
		for _, f := range rehearse.Document(text) {
			faults = append(faults, Fault{r.Number, r.column(join(at, f.Name)), f.Text})
		}
		made, err := d.with(client.StoredFile{})
		if err != nil {
			faults = append(faults, Fault{r.Number, at, err.Error()})
		}
		key := strings.Join([]string{d.File, made.URL, made.Title, made.DocumentType}, "\n")
		if seen[key] {
			const says = "the row has two documents with this file or address, title and type"
			faults = append(faults, Fault{r.Number, at, says})
		}
		seen[key] = true
	}
	return faults
}

// sent returns the fields that the document will have, as if its file were uploaded. The result "twice" has the
// names of fields that the row sets although they come from the file.
func (d Document) sent() (fields client.Fields, twice []string) {
	fields = maps.Clone(d.Fields)
	if d.File == "" {
		return fields, nil
	}
	for _, of := range [][2]string{{"url", "https://files.example/get/0"}, {"hash", "md5:" + strings.Repeat("0", 32)}} {
		if fields[of[0]] != nil {
			twice = append(twice, of[0])
		}
		fields[of[0]] = of[1]
	}
	if fields["title"] == nil {
		fields["title"] = path.Base(d.File)
	}
	return fields, twice
}

// fileFaults returns a fault for each document whose file cannot be uploaded.
func (r Row) fileFaults(files *Folder) (faults []Fault) {
	for i, d := range r.Documents {
		if d.File == "" {
			continue
		}
		if err := files.check(d.File); err != nil {
			at := fmt.Sprintf("%s.%d.%s", documents, i, fileField)
			faults = append(faults, Fault{r.Number, r.column(at), fmt.Sprintf("file %s: %v", quoted(d.File), err)})
		}
	}
	return faults
}
