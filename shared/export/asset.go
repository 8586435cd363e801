package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Asset is an asset that was read for exports.
type Asset struct {
	line []byte
	rows [][][]cell // rows of each table
}

// Read reads an asset from a line of JSON. The caller must not change the line afterwards. ok is false for an
// asset that no search finds: one in test mode, a deleted one, or a draft. A value of a wrong type is dropped.
func Read(line []byte) (a *Asset, ok bool, err error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err = d.Decode(&fields); err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("there is more than one value")
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("read an asset: %w", err)
	}
	a = &Asset{line: line, rows: make([][][]cell, len(Tables))}
	row := rowOf(Tables[ofAssets], fields)
	for _, table := range []int{ofItems, ofDocuments} {
		list, _ := fields[Tables[table].Name].([]any)
		for _, element := range list {
			r := rowOf(Tables[table], element)
			r[0] = row[idColumn]
			a.rows[table] = append(a.rows[table], r)
		}
		row[lengthColumns[table]] = cell{text: strconv.Itoa(len(list)), isNumber: true}
	}
	if len(a.rows[ofItems]) > 0 {
		copy(row[lengthColumns[ofItems]+1:], a.rows[ofItems][0][2:]) // without the ids of the asset and the item
	}
	a.rows[ofAssets] = [][]cell{row}
	mode, _ := fields["mode"].(string)
	status := row[statusColumn].text
	return a, mode == "" && status != "deleted" && status != "draft", nil
}

// rowOf returns the cells of a table's columns for an object.
func rowOf(t Table, object any) []cell {
	row := make([]cell, len(t.columns))
	for i, c := range t.columns {
		value := object
		for _, f := range c.above {
			in, _ := value.(map[string]any)
			value = in[f.Name]
		}
		switch value := value.(type) {
		case string:
			row[i] = cellOf(c.kind, value)
		case json.Number:
			if c.kind != text {
				row[i] = cellOf(c.kind, value.String())
			}
		}
	}
	return row
}

// The indexes of columns of the table of assets.
var (
	idColumn      = Tables[ofAssets].index("id")
	statusColumn  = Tables[ofAssets].index("status")
	lengthColumns = []int{
		ofItems: Tables[ofAssets].index("items.length"), ofDocuments: Tables[ofAssets].index("documents.length"),
	}
)

func (t Table) index(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}
