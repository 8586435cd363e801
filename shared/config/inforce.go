package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"asset-registry/shared/command"
)

// Check reads settings as Parse does, and writes the values in force to w. It writes one line per setting, in the form
// of the file, with the value and the source of the value. Secrets are masked. The list `args` may begin with the name
// of a file, as for --config. The parameter `command` names the command whose settings are read; it is "" if dst has no
// commands, or has a default command. If Parse would return an error, Check returns it and writes nothing to w. It
// prints warnings to standard error.
func Check(dst any, name, envPrefix, command string, args []string, w io.Writer) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append([]string{"--config", args[0]}, args[1:]...)
	}
	if command != "" {
		args = append([]string{command}, args...)
	}
	parsed, file, err := parse(dst, name, "", envPrefix, args, os.Stderr)
	if err != nil {
		return err
	}
	for _, flag := range parsed.Flags() {
		if flag.Hidden || flag.Name == "help" || flag.Name == "version" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s # %s\n", flag.Name, inForce(flag), origin(parsed, file, flag)); err != nil {
			return err
		}
	}
	return nil
}

// origin returns where the value of a flag came from: the last source of Parse that has a value for it.
func origin(parsed *kong.Context, file *settings, flag *kong.Flag) string {
	if slices.ContainsFunc(parsed.Path, func(p *kong.Path) bool { return p.Flag == flag && !p.Resolved }) {
		return "flag"
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return "environment, " + name
		}
	}
	if file.values[flag.Name] != nil {
		return "file"
	}
	return "default"
}

var (
	secretName = regexp.MustCompile(`(^|-)(password|secret|token)$`)
	parameter  = regexp.MustCompile(`(?i)([?&][^=&"]*(?:pass|secret|token)[^=&"]*=)[^&"]*`)
)

// inForce returns the value of a flag as JSON, which is valid YAML too. Secrets are masked.
func inForce(flag *kong.Flag) string {
	if secretName.MatchString(flag.Name) && !flag.Target.IsZero() {
		return `"***"`
	}
	value := flag.Target.Interface()
	if length, is := value.(time.Duration); is {
		return length.String()
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		text.Reset()
		fmt.Fprintf(&text, "%q", fmt.Sprint(value))
	}
	shown := command.WithoutPasswords(strings.TrimSpace(text.String()))
	return parameter.ReplaceAllString(shown, "${1}***")
}
