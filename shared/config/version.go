package config

import (
	"fmt"

	"github.com/alecthomas/kong"

	"asset-registry/shared/buildinfo"
)

// PrintVersion is the type of a flag that prints the program's name and build, and
// ends the process. Parse declares it as --version.
type PrintVersion bool

// BeforeReset prints the build before any setting is read. Kong calls it.
func (PrintVersion) BeforeReset(app *kong.Kong) error {
	fmt.Fprintln(app.Stdout, app.Model.Name, buildinfo.Read())
	app.Exit(0)
	return nil
}
