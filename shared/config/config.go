// Package config reads a process's settings from flags, the environment and a
// YAML file. One struct with tags declares them all.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"asset-registry/shared/errs"
)

// Parse fills dst, a pointer to a struct with kong tags (HelpTexts has the long
// help texts). It returns the name of the command in args, if dst has commands. A
// later source wins over an earlier one:
//
//   - the defaults in the tags,
//   - the YAML file of --config, whose keys are the names of flags, and whose values are
//     read like the values of flags,
//   - the environment: envPrefix, an underscore and the flag's name in capitals,
//   - args.
//
// The error lists all faults of the file, such as unknown keys; dst then has the valid values. If dst has no
// commands, a first argument "serve" is ignored. --help prints the flags and ends the process. So does no argument,
// if dst has commands and none of them is the default.
func Parse(dst any, name, description, envPrefix string, args []string) (command string, err error) {
	parsed, _, err := parse(dst, name, description, envPrefix, args)
	if err != nil {
		return "", err
	}
	return parsed.Command(), nil
}

// parse works like Parse. It also returns kong's description of the settings, and the values of the file.
func parse(dst any, name, description, envPrefix string, args []string) (*kong.Context, *settings, error) {
	var file struct {
		Config kong.ConfigFlag `placeholder:"FILE" help:"YAML file with settings, named like the flags."`
		Print  PrintSettings   `name:"print-settings" hidden:"" help:"Print every setting as JSON and exit."`

		Version PrintVersion `env:"-" help:"Print the version, the revision of the source and the Go release, and exit."`
	}
	read := &settings{}
	parser, err := kong.New(dst, append(Types(),
		kong.Name(name),
		kong.Description(description),
		kong.Embed(&file),
		kong.PostBuild(group),
		kong.DefaultEnvars(envPrefix),
		kong.Configuration(read.from),
		helpTexts(reflect.ValueOf(dst).Elem()),
	)...)
	if err != nil {
		return nil, nil, fmt.Errorf("declare settings: %w", err)
	}
	if len(args) > 0 && args[0] == "serve" && len(parser.Model.Children) == 0 {
		args = args[1:] // so that "serve" starts every service, with or without commands
	}
	if len(args) == 0 && len(parser.Model.Children) > 0 && parser.Model.DefaultCmd == nil {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if _, isFile := errors.AsType[*fs.PathError](err); isFile { // only the flag --config opens a file
		err = fmt.Errorf("--config: %w", err)
	}
	if err = errors.Join(append(append(read.faults, read.unknown(parser.Model)...), err)...); err != nil {
		return nil, nil, err
	}
	return parsed, read, nil
}

// settings are the values of a config file, as a kong.Resolver. Kong stops at
// the first error, so settings collects the faults instead of returning them.
type settings struct {
	values map[string]any
	faults []error
}

func (s *settings) from(r io.Reader) (kong.Resolver, error) {
	err := ReadYAML(r, &s.values)
	return s, errs.In(err, "config file")
}

// Validate does nothing. kong calls Validate only if it has found no fault, so Parse
// checks for unknown keys itself.
func (s *settings) Validate(*kong.Application) error { return nil }

// unknown returns a fault for every key that names no flag.
func (s *settings) unknown(app *kong.Application) (faults []error) {
	known := map[string]bool{}
	err := kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && !flag.Hidden {
			known[flag.Name] = true
		}
		return next(nil)
	})
	if err != nil {
		return []error{fmt.Errorf("config file: %w", err)}
	}
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if !known[key] {
			faults = append(faults, fmt.Errorf("config file: unknown setting %q", key))
		}
	}
	return faults
}

// Resolve returns the file's value for a flag, unless the environment sets the
// flag or the value is invalid.
func (s *settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	value, err := forFlag(s.values[flag.Name], flag)
	if value == nil && err == nil {
		return nil, nil
	}
	if err == nil { // the error of flag.Parse names the flag
		err = flag.Parse(kong.Scan().PushTyped(value, kong.FlagValueToken), reflect.New(flag.Target.Type()).Elem())
	}
	if err != nil {
		s.faults = append(s.faults, fmt.Errorf("config file: %w", err))
		return nil, nil
	}
	return value, nil
}

// forFlag turns a list or table into JSON for a flag whose type reads JSON.
func forFlag(value any, flag *kong.Flag) (any, error) {
	if _, ok := flag.Target.Addr().Interface().(json.Unmarshaler); !ok || value == nil {
		return value, nil
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	text, err := json.Marshal(jsonOf(value))
	return string(text), err
}
