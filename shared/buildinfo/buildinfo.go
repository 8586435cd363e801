// Package buildinfo says from what a program was built.
package buildinfo

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// version and revision belong to a release. The linker sets them (deploy/release); elsewhere they are empty.
var version, revision string

// Info describes a build. A field that is not known is "unknown".
type Info struct {
	Version  string `json:"version"`  // such as "0.1.0"; outside of a release the version of the main module
	Revision string `json:"revision"` // revision of the source; ends in "-dirty" if the source had local changes
	Go       string `json:"go"`       // release of Go
}

// Read returns the build of this program.
func Read() Info {
	build := Info{"unknown", "unknown", "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build
	}
	build.Version, build.Go = cmp.Or(version, info.Main.Version), info.GoVersion
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			build.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	build.Revision = cmp.Or(revision, build.Revision+dirty)
	return build
}

// String returns the build in one line.
func (i Info) String() string { return fmt.Sprintf("%s, revision %s, %s", i.Version, i.Revision, i.Go) }
