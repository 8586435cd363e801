package httpapi

import (
	"bytes"
	"slices"
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

// version is one version of the API (docs/contract.md, "Versions"), as a caller sees it.
type version struct {
	name asset.Version
	view *asset.View
	full *asset.View // of callers with an API key; nil: all see the same
}

// publicVersions returns the versions that the gateway forwards, without the fields of
// some groups.
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

// seenBy returns the version as the caller of a request sees it (docs/contract.md,
// "Hidden fields").
func (v version) seenBy(c *gin.Context) version {
	if v.full != nil && !httpserver.Caller(c).IsAnonymous() {
		v.view, v.full = v.full, nil
	}
	return v
}

// prefix returns the start of every path of the version: "/api/2.5".
func (v version) prefix() string { return routes.Prefix(string(v.name)) }

// factor returns the number of bytes that a read in this version works with, for
// each byte of an asset.
func (v version) factor() int {
	if v.view.IsWhole() {
		return copies
	}
	return trees
}

// show appends an asset as this version shows it. A stored body is what the newest
// version shows, without dateModified, so most reads only copy bytes.
func (v version) show(dst, body []byte, position int64, zone *time.Location) ([]byte, error) {
	if v.view.MayHide(body) {
		dst = append(dst, '{')
		start := len(dst)
		var err error
		if dst, err = v.view.AppendMembers(dst, body, func(string) bool { return true }); err != nil {
			return nil, err
		}
		if len(dst) > start {
			dst = slices.Delete(dst, start, start+1) // the comma before the first member
		}
	} else {
		dst = append(dst, bytes.TrimSuffix(body, []byte{'}'})...)
	}
	dst = append(dst, `,"dateModified":"`...)
	dst = asset.AppendTime(dst, time.UnixMicro(position), zone)
	return append(dst, `"}`...), nil
}

// listed appends an asset as a listing shows it: its id, its dateModified, and
// the wanted fields (docs/contract.md, "Pages").
func (v version) listed(dst []byte, e registry.Entry, wanted fieldSet, zone *time.Location) ([]byte, error) {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, e.ID...)
	dst = append(dst, `","dateModified":"`...)
	dst = asset.AppendTime(dst, time.UnixMicro(e.Position), zone)
	dst = append(dst, '"')
	if e.Reference != "" && (wanted.all || wanted.names["reference"]) {
		dst = record.Append(append(dst, `,"reference":`...), e.Reference)
	}
	if rest := afterID(e); rest != nil && wanted.all && !v.view.MayHide(rest) {
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

// afterID returns the members of a stored body after its id, and the last brace. It
// returns nil for a body that does not begin with the id.
func afterID(e registry.Entry) []byte {
	rest, ok := bytes.CutPrefix(e.Body, []byte(`{"id":"`))
	if ok {
		rest, ok = bytes.CutPrefix(rest, []byte(e.ID))
	}
	if ok {
		rest, ok = bytes.CutPrefix(rest, []byte(`",`))
	}
	if !ok || !bytes.HasSuffix(rest, []byte{'}'}) {
		return nil
	}
	return rest
}

// encode returns what shows entries as a listing with the parameter opt_fields does.
func (v version) encode(fields string, zone *time.Location) live.Encode {
	wanted := wantedOf(strings.Split(fields, ","))
	return func(dst []byte, e registry.Entry) ([]byte, error) { return v.listed(dst, e, wanted, zone) }
}

// printPosition returns a position as a timestamp.
func printPosition(position int64, zone *time.Location) string {
	return asset.FormatTime(time.UnixMicro(position), zone)
}
