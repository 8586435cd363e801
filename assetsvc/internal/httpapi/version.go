package httpapi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
)

// version is how one version of the API sees the stored assets (interface
// document, Versioning; contract, decision 12).
type version struct {
	name     string
	hidden   []string // dotted paths of fields that it neither accepts nor shows
	transfer bool     // shows access.transfer on creation
}

// versions is the table of them all. The edge maps version 0 to the current one.
var versions = []version{
	{name: "2.4", hidden: []string{
		"rectificationPeriod",
		"assetCustodian.additionalContactPoints",
		"assetHolder.additionalContactPoints",
	}},
	{name: "2.5", transfer: true},
}

// factor returns how many bytes a reading in this version works with for each
// byte of an asset.
func (v version) factor() int {
	if len(v.hidden) > 0 {
		return trees
	}
	return copies
}

// show appends an asset as this version shows it. What is stored is what the
// newest version shows, short of dateModified, so that most reads copy bytes.
func (v version) show(dst []byte, body []byte, position int64, zone *time.Location) ([]byte, error) {
	if v.hides(body) {
		dst = append(dst, '{')
		start := len(dst)
		var err error
		if dst, err = v.members(dst, body, func(string) bool { return true }); err != nil {
			return nil, err
		}
		if len(dst) > start {
			dst = append(dst[:start], dst[start+1:]...) // the first comma
		}
	} else {
		dst = append(dst, bytes.TrimSuffix(body, []byte{'}'})...)
	}
	dst = append(dst, `,"dateModified":"`...)
	dst = asset.AppendTime(dst, time.UnixMicro(position), zone)
	return append(dst, `"}`...), nil
}

// hides tells whether body may hold a field that is hidden; a false alarm
// costs time only.
func (v version) hides(body []byte) bool {
	return slices.ContainsFunc(v.hidden, func(path string) bool {
		name := path[strings.LastIndexByte(path, '.')+1:]
		return bytes.Contains(body, []byte(`"`+name+`"`))
	})
}

// members appends the members of a stored asset that are wanted and that this
// version shows, each after a comma. Most are copied as they are stored.
func (v version) members(dst []byte, body []byte, wanted func(name string) bool) ([]byte, error) {
	for name, value := range record.Members(body) {
		if value == nil {
			return nil, fmt.Errorf("the stored asset is damaged after field %q", name)
		}
		if !wanted(name) || slices.Contains(v.hidden, name) {
			continue
		}
		dst = append(record.AppendString(append(dst, ','), name), ':')
		var hidden []string // in it
		for _, path := range v.hidden {
			if within, ok := strings.CutPrefix(path, name+"."); ok {
				hidden = append(hidden, within)
			}
		}
		if hidden == nil {
			dst = append(dst, value...)
			continue
		}
		parsed, err := record.Parse(value)
		if err != nil {
			return nil, err
		}
		fields, _ := parsed.(record.Object)
		for _, path := range hidden {
			fields = without(fields, path)
		}
		dst = record.Append(dst, fields)
	}
	return dst, nil
}

// printPosition prints a position as the timestamp that it is.
func printPosition(position int64, zone *time.Location) string {
	return asset.FormatTime(time.UnixMicro(position), zone)
}

// listed appends an asset as a listing shows it: id and dateModified, and of
// its other fields those that the client named, all for "*" (contract, section
// 5.1, opt_fields). Names of no field are ignored.
func (v version) listed(dst []byte, e registry.Entry, names []string, zone *time.Location) ([]byte, error) {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, e.ID...)
	dst = append(dst, `","dateModified":"`...)
	dst = asset.AppendTime(dst, time.UnixMicro(e.Position), zone)
	dst = append(dst, '"')
	if e.Body != nil {
		all := slices.Contains(names, "*")
		var err error
		dst, err = v.members(dst, e.Body, func(name string) bool { return name != "id" && (all || slices.Contains(names, name)) })
		if err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}
