package httpapi

import (
	"bytes"
	"slices"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/routes"
)

// version is one version of the API (docs/contract.md, "Versions").
type version struct {
	name asset.Version
	view *asset.View
}

// versions returns the versions that the gateway forwards.
func versions() []version {
	var all []version
	for _, target := range routes.Targets() {
		name := asset.Version(target)
		all = append(all, version{name: name, view: asset.NewView(name)})
	}
	return all
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
func (v version) listed(
	dst []byte, e registry.Entry, wanted func(name string) bool, zone *time.Location,
) ([]byte, error) {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, e.ID...)
	dst = append(dst, `","dateModified":"`...)
	dst = asset.AppendTime(dst, time.UnixMicro(e.Position), zone)
	dst = append(dst, '"')
	if e.Body != nil {
		var err error
		if dst, err = v.view.AppendMembers(dst, e.Body, wanted); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// printPosition returns a position as a timestamp.
func printPosition(position int64, zone *time.Location) string {
	return asset.FormatTime(time.UnixMicro(position), zone)
}
