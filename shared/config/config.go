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
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"asset-registry/shared/command"
	"asset-registry/shared/errs"
)

// Checker is a struct of settings, some of whose values depend on each other or on files. Check returns all that is
// wrong with them, with the names of the settings such as --data, and prints warnings.
type Checker interface {
	Check(warnings io.Writer) error
}

// Warned is a struct of settings that is told of what an operator is warned at a start.
type Warned interface {
	Warn(warnings []string)
}

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
// The error lists all faults, also those that the Checker of the command finds; dst then has the defaults in place of
// faulty values. For a server the error is command.ErrSettings. If dst has no commands, a first argument "serve" is
// ignored. --help prints the flags and ends the process. So does no argument, if dst has commands and none of them is
// the default.
func Parse(dst any, name, description, envPrefix string, args []string) (chosen string, err error) {
	parsed, _, err := parse(dst, name, description, envPrefix, args, io.Discard)
	if err != nil && serves(args) {
		err = fmt.Errorf("%w%w", command.ErrSettings, err)
	}
	if err != nil {
		return "", err
	}
	return parsed.Command(), nil
}

// serves reports whether a command line starts a server.
func serves(args []string) bool {
	return len(args) == 0 || strings.HasPrefix(args[0], "-") || args[0] == "serve" || args[0] == "mirror"
}

// parse works like Parse. It also returns kong's description of the settings, and the values of the file.
func parse(
	dst any, name, description, envPrefix string, args []string, warnings io.Writer,
) (*kong.Context, *settings, error) {
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
		kong.PostBuild(read.watch),
		kong.DefaultEnvars(envPrefix),
		kong.Configuration(read.from),
		kong.WithBeforeReset(read.enter(fromEnvironment)),
		kong.WithBeforeResolve(read.enterFile),
		kong.WithBeforeApply(read.enter(applied)),
		helpTexts(reflect.ValueOf(dst).Elem()),
	)...)
	if err != nil {
		return nil, nil, fmt.Errorf("declare settings: %w", err)
	}
	if len(args) > 0 && args[0] == "serve" && len(parser.Model.Children) == 0 {
		args = args[1:] // so that "serve" starts every service, with or without commands
	}
	switch {
	case len(args) == 0 && len(parser.Model.Children) > 0 && parser.Model.DefaultCmd == nil:
		args = []string{"--help"}
	case len(args) == 1 && args[0] == "version":
		args = []string{"--version"}
	}
	parsed, unknown, err := read.parseAll(parser, args)
	if _, isFile := errors.AsType[*fs.PathError](err); isFile { // only the flag --config opens a file
		err = fmt.Errorf("--config: %w", err)
	}
	read.faults = read.inForce(parsed, read.faults)
	faults := append(unknown, read.unknown(parser.Model)...)
	for _, fault := range read.faults {
		faults = append(faults, fault)
	}
	if read.source != applied {
		return parsed, read, errors.Join(append(faults, err)...)
	}
	if of, isParse := errors.AsType[*kong.ParseError](err); isParse {
		err = of.Unwrap()
	}
	faults = append(faults, read.withValues(parsed, errors.Join(err, errors.Join(sharedPorts(parsed.Flags())...)))...)
	var doubts []string
	for _, doubt := range read.inForce(parsed, read.warnings) {
		doubts = append(doubts, doubt.Error())
		fmt.Fprintln(warnings, "warning:", doubt)
	}
	for _, path := range parsed.Path {
		node := path.Node()
		if node == nil || !node.Target.CanAddr() {
			continue
		}
		if c, isChecker := node.Target.Addr().Interface().(Checker); isChecker {
			faults = append(faults, read.withValues(parsed, c.Check(warnings))...)
		}
		if w, isWarned := node.Target.Addr().Interface().(Warned); isWarned {
			w.Warn(doubts)
		}
	}
	return parsed, read, errors.Join(faults...)
}

// parseAll parses args. Kong stops at a flag that it does not know, so parseAll leaves such flags of a server out, with
// their values, and returns an error for each.
func (s *settings) parseAll(parser *kong.Kong, args []string) (parsed *kong.Context, unknown []error, err error) {
	for {
		s.faults, s.warnings, s.source = nil, nil, fromFlags
		parsed, err = parser.Parse(args)
		failed, isParse := errors.AsType[*kong.ParseError](err)
		if !isParse {
			return parsed, unknown, err
		}
		rest, isUnknown := strings.CutPrefix(err.Error(), "unknown flag ")
		name, _, _ := strings.Cut(rest, ",")
		at := slices.IndexFunc(args, func(arg string) bool { return arg == name || strings.HasPrefix(arg, name+"=") })
		if !isUnknown || !serves(args) || at < 0 {
			return failed.Context, unknown, err
		}
		unknown = append(unknown, err)
		end := at + 1
		if args[at] == name && end < len(args) && !strings.HasPrefix(args[end], "-") {
			end++
		}
		args = slices.Delete(slices.Clone(args), at, end)
	}
}

// settings are the values of a config file, as a kong.Resolver. Kong stops at
// the first fault, so settings collects the faults of all values instead.
type settings struct {
	values   map[string]any
	source   source
	faults   []told
	warnings []told
}

// source is where kong reads values at the moment. Kong reads the sources in this order.
type source int

const (
	fromFlags source = iota
	fromEnvironment
	fromFile
	applied // kong has read everything
)

// told is a fault of a setting, or a warning about it.
type told struct {
	flag *kong.Flag
	from source
	err  error
}

// Error implements error.
func (t told) Error() string {
	switch t.from {
	case fromEnvironment:
		return fmt.Sprintf("--%s: %v (from the environment, %s)", t.flag.Name, t.err, t.flag.Envs[0])
	case fromFile:
		return fmt.Sprintf("config file: --%s: %v", t.flag.Name, t.err)
	}
	return fmt.Sprintf("--%s: %v", t.flag.Name, t.err)
}

// Unwrap returns the error without the setting.
func (t told) Unwrap() error { return t.err }

func (s *settings) enter(next source) func() error {
	return func() error { s.source = next; return nil }
}

// enterFile also looks at the config file, which kong opens next.
func (s *settings) enterFile(parsed *kong.Context) error {
	s.source = fromFile
	for _, flag := range parsed.Flags() {
		if path, is := parsed.FlagValue(flag).(kong.ConfigFlag); is {
			return command.File(string(path))
		}
	}
	return nil
}

// watched is a reader for one setting. It checks each value. If a value is wrong, it adds a fault to the settings, and
// the setting gets its default.
type watched struct {
	kong.Mapper
	flag *kong.Flag
	s    *settings
}

// watch lets the settings watch every flag of a program.
func (s *settings) watch(parser *kong.Kong) error {
	return kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, isFlag := node.(*kong.Flag); isFlag && !flag.Hidden && flag.Name != "config" {
			flag.Mapper = watched{flag.Mapper, flag, s}
		}
		return next(nil)
	})
}

// Decode implements kong.Mapper.
func (w watched) Decode(c *kong.DecodeContext, target reflect.Value) error {
	err := w.Mapper.Decode(c, target)
	var warning string
	if err == nil {
		warning, err = check(w.flag, target)
	}
	if warning != "" {
		w.s.warnings = append(w.s.warnings, told{w.flag, w.s.source, errors.New(warning)})
	}
	if err == nil {
		return nil
	}
	w.s.faults = append(w.s.faults, told{w.flag, w.s.source, err})
	target.SetZero()
	if !w.flag.HasDefault {
		return nil
	}
	text := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: w.flag.Default})
	return w.Mapper.Decode(&kong.DecodeContext{Value: w.flag.Value, Scan: text}, target)
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
		if flag, ok := node.(*kong.Flag); ok && flag.Name != "print-settings" {
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

// inForce returns the faults of the settings of the chosen command, each once. A flag hides a value of the environment.
func (s *settings) inForce(parsed *kong.Context, all []told) (kept []told) {
	flags := parsed.Flags()
	for _, t := range all {
		isHidden := t.from == fromEnvironment && origin(parsed, s, t.flag) == "flag"
		isKept := slices.ContainsFunc(kept, func(old told) bool { return old.Error() == t.Error() })
		if slices.Contains(flags, t.flag) && !isHidden && !isKept {
			kept = append(kept, t)
		}
	}
	return kept
}

// settingName matches the name of a setting in the text of an error.
var settingName = regexp.MustCompile(`--[a-z][a-z-]*[a-z]`)

// withValues returns the faults of a Checker, each with the values of the settings that it names. It leaves out faults
// of a setting whose value is not even read.
func (s *settings) withValues(parsed *kong.Context, err error) (faults []error) {
	all, isList := err.(interface{ Unwrap() []error })
	if isList && err.Error() == errors.Join(all.Unwrap()...).Error() {
		for _, one := range all.Unwrap() {
			faults = append(faults, s.withValues(parsed, one)...)
		}
		return faults
	}
	if err == nil {
		return nil
	}
	names, text := settingName.FindAllString(err.Error(), -1), err.Error()
	if slices.ContainsFunc(s.faults, func(t told) bool { return slices.Contains(names, "--"+t.flag.Name) }) {
		return nil
	}
	for _, flag := range parsed.Flags() {
		from, value := origin(parsed, s, flag), inForce(flag)
		bare := strings.Trim(value, `"`)
		if slices.Contains(names, "--"+flag.Name) && from != "default" && !strings.Contains(text, bare) {
			value = strings.Replace(value, bare, shown(flag, bare), 1)
			err = fmt.Errorf("%w (--%s is %s, %s)", err, flag.Name, value, from)
		}
	}
	return []error{err}
}

// Resolve returns the file's value for a flag, unless the environment sets the flag.
func (s *settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	value, err := forFlag(s.values[flag.Name], flag)
	if err != nil {
		s.faults = append(s.faults, told{flag, fromFile, err})
		return nil, nil
	}
	return value, nil
}

// forFlag returns a value of the file for a flag. For a flag whose type reads JSON, it turns a list or table into JSON.
// No other flag takes a table, and only lists and maps take one of their kind.
func forFlag(value any, flag *kong.Flag) (any, error) {
	written, isText := value.(string)
	switch _, readsJSON := flag.Target.Addr().Interface().(json.Unmarshaler); {
	case value == nil, isText && written != "":
		return value, nil
	case isText && flag.IsSlice():
		return []any{""}, nil
	case isText: // kong takes it for no value
		return kong.Token{Type: kong.FlagValueToken, Value: ""}, nil
	case readsJSON:
		text, err := json.Marshal(jsonOf(value))
		return string(text), err
	}
	list, isList := value.([]any)
	isNested := slices.ContainsFunc(list, func(v any) bool { _, isText := v.(string); return !isText })
	_, isTable := value.(map[string]any)
	if isList && flag.IsSlice() && !isNested || isTable && flag.IsMap() {
		return value, nil
	}
	text, err := json.Marshal(value)
	switch flag.Target.Kind() {
	case reflect.String:
		err = wanted(flag, "one text", string(text))
	case reflect.Slice:
		err = wanted(flag, "a list of texts", string(text))
	}
	return string(text), err // which the reader of the flag refuses
}
