// Package config reads what a process is told at its start: flags, the
// environment and a YAML file, declared together in one struct per command.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// Parse fills dst, a pointer to a struct with kong tags, and returns the name
// of the command that was given if dst has any. The later of these win: the
// tags' defaults, a YAML file named by --config, the environment (envPrefix, an
// underscore and the flag's name in capitals), args. The file has the flags'
// names as keys; a key that is none is an error. --help prints what there is
// and ends the process.
func Parse(dst any, name, description, envPrefix string, args []string) (command string, err error) {
	var file struct {
		Config kong.ConfigFlag `placeholder:"FILE" help:"YAML file with settings, named like the flags."`
	}
	parser, err := kong.New(dst,
		kong.Name(name),
		kong.Description(description),
		kong.Embed(&file),
		kong.DefaultEnvars(envPrefix),
		kong.Configuration(readFile),
	)
	if err != nil {
		return "", fmt.Errorf("declare settings: %w", err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return "", err
	}
	return parsed.Command(), nil
}

// settings are the contents of a config file; they resolve kong's flags.
type settings map[string]any

func readFile(r io.Reader) (kong.Resolver, error) {
	var s settings
	if err := yaml.NewDecoder(r).Decode(&s); err != nil && !errors.Is(err, io.EOF) { // EOF: an empty file
		return nil, fmt.Errorf("config file: %s", yaml.FormatError(err, false, false))
	}
	return s, nil
}

// Validate reports every key that names no flag.
func (s settings) Validate(app *kong.Application) error {
	known := map[string]bool{}
	err := kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known[flag.Name] = true
		}
		return next(nil)
	})
	if err != nil {
		return fmt.Errorf("config file: %w", err)
	}
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if !known[key] {
			faults = append(faults, fmt.Errorf("config file: %q is no setting", key))
		}
	}
	return errors.Join(faults...)
}

// Resolve returns what the file says of a flag that the environment is silent
// on. A value of more than one level is handed on as JSON, for the flag's type
// to read.
func (s settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	value := s[flag.Name]
	if _, ok := flag.Target.Addr().Interface().(json.Unmarshaler); !ok || value == nil {
		return value, nil
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("config file: %s: %w", flag.Name, err)
	}
	return string(text), nil
}
