// Package buildinfo tells from what a program was built.
package buildinfo

import (
	"fmt"
	"runtime/debug"
)

// Info describes a build. A field that is not known is "unknown".
type Info struct {
	Version  string `json:"version"`  // of the main module; "(devel)" outside of a release
	Revision string `json:"revision"` // of the source; ends in "-dirty" if it had changes
	Go       string `json:"go"`       // release of Go
}

// Read returns the build of this program.
func Read() Info {
	build := Info{"unknown", "unknown", "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build
	}
	build.Version, build.Go = info.Main.Version, info.GoVersion
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			build.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	build.Revision += dirty
	return build
}

// String returns the build in one line.
func (i Info) String() string { return fmt.Sprintf("%s, revision %s, %s", i.Version, i.Revision, i.Go) }
