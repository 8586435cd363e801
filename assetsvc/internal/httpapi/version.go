package httpapi

import (
	"bytes"
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

// show appends an asset as this version shows it. What is stored is what the
// newest version shows, short of dateModified, so that most reads copy bytes.
func (v version) show(dst []byte, body []byte, position int64, zone *time.Location) ([]byte, error) {
	if v.hides(body) {
		fields, err := v.fields(body)
		if err != nil {
			return nil, err
		}
		body = record.Append(nil, fields)
	}
	dst = append(dst, bytes.TrimSuffix(body, []byte{'}'})...)
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

// fields returns the members of a stored asset that this version shows.
func (v version) fields(body []byte) (record.Object, error) {
	value, err := record.Parse(body)
	if err != nil {
		return nil, err
	}
	fields, _ := value.(record.Object)
	for _, path := range v.hidden {
		fields = without(fields, path)
	}
	return fields, nil
}

// printPosition prints a position as the timestamp that it is.
func printPosition(position int64, zone *time.Location) string {
	return asset.FormatTime(time.UnixMicro(position), zone)
}

// listed appends an asset as a listing shows it: id and dateModified, and of
// its other fields those that the client named (contract, section 5.1,
// opt_fields). Names of no field are ignored.
func (v version) listed(dst []byte, e registry.Entry, names []string, zone *time.Location) ([]byte, error) {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, e.ID...)
	dst = append(dst, `","dateModified":"`...)
	dst = asset.AppendTime(dst, time.UnixMicro(e.Position), zone)
	dst = append(dst, '"')
	if e.Body != nil {
		fields, err := v.fields(e.Body)
		if err != nil {
			return nil, err
		}
		for _, m := range fields {
			if m.Name != "id" && slices.Contains(names, m.Name) {
				dst = append(record.AppendString(append(dst, ','), m.Name), ':')
				dst = record.Append(dst, m.Value)
			}
		}
	}
	return append(dst, '}'), nil
}
