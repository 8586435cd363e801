package httpapi

import (
	"bytes"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/live"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// version is one version of the API (docs/contract.md, "Versions"), with the view that a caller has.
type version struct {
	name asset.Version
	view *asset.View
	full *asset.View // the view for callers with an API key; nil: all callers have the same view
}

// publicVersions returns the versions that the gateway forwards, without the fields of the hidden groups.
func publicVersions(hidden []asset.Group) []version {
	var all []version
	for _, target := range routes.Targets() {
		all = append(all, publicVersion(target, hidden))
	}
	return all
}

func publicVersion(name string, hidden []asset.Group) version {
	v := version{name: asset.Version(name), view: asset.NewView(asset.Version(name), hidden...)}
	if len(hidden) > 0 {
		v.full = asset.NewView(v.name)
	}
	return v
}

// seenBy returns the version with the view that the caller of a request has (docs/contract.md, "Hidden
// fields").
func (v version) seenBy(c *gin.Context) version {
	if v.full != nil && !httpserver.Caller(c).IsAnonymous() {
		v.view, v.full = v.full, nil
	}
	return v
}

// prefix returns the start of all paths of the version, such as "/api/2.5".
func (v version) prefix() string { return routes.Prefix(string(v.name)) }

// factor returns the number of bytes that a read in this version uses for each byte of an asset.
func (v version) factor() int {
	if v.view.IsWhole() {
		return copies
	}
	return trees
}

// show appends an asset in the form of this version. A stored body has the form of the newest version, except
// that dateModified is absent. So most reads only copy bytes.
func (v version) show(dst, body []byte, position int64, zone *time.Location) ([]byte, error) {
	if v.view.MayHide(body) {
		start := len(dst)
		var err error
		if dst, err = v.view.AppendMembers(dst, body, func(string) bool { return true }); err != nil {
			return nil, err
		}
		dst[start] = '{' // instead of the comma before the first member
	} else {
		dst = append(dst, bytes.TrimSuffix(body, []byte{'}'})...)
	}
	dst = append(dst, `,"dateModified":"`...)
	dst = asset.AppendTime(dst, time.UnixMicro(position), zone)
	return append(dst, `"}`...), nil
}

// listed appends an asset in the form of a listing: its id, its dateModified, and the wanted fields
// (docs/contract.md, "Pages").
func (v version) listed(dst []byte, e registry.Entry, wanted fieldSet, zone *time.Location) ([]byte, error) {
	start := len(dst)
	dst = append(append(append(dst, `{"id":"`...), e.ID...), `",`...)
	id := dst[start:] // most stored bodies begin with these bytes
	dst = append(dst, `"dateModified":"`...)
	dst = asset.AppendTime(dst, time.UnixMicro(e.Position), zone)
	dst = append(dst, '"')
	if e.Reference != "" && (wanted.all || wanted.names["reference"]) {
		dst = record.Append(append(dst, `,"reference":`...), e.Reference)
	}
	rest, found := bytes.CutPrefix(e.Body, id)
	if found && wanted.all && bytes.HasSuffix(rest, []byte{'}'}) && !v.view.MayHide(rest) {
		return append(append(dst, ','), rest...), nil
	}
	if e.Body != nil {
		var err error
		if dst, err = v.view.AppendMembers(dst, e.Body, wanted.has); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// encode returns a function that shows entries like a listing does. The parameter `fields` has the value of
// opt_fields.
func (v version) encode(fields string, zone *time.Location) live.Encode {
	wanted := wantedOf(strings.Split(fields, ","))
	return func(dst []byte, e registry.Entry) ([]byte, error) { return v.listed(dst, e, wanted, zone) }
}

// printPosition returns a position as a timestamp in a zone.
func printPosition(position int64, zone *time.Location) string {
	return asset.FormatTime(time.UnixMicro(position), zone)
}
