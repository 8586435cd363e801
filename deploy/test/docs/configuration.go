// Package docs keeps the documents true. It generates docs/configuration.md from the programs' own declarations,
// runs the examples in README.md and docs, and checks links, paths and citations.
package docs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"asset-registry/shared/config"
)

// introduction is the beginning of the generated document.
const introduction = `# Configuration

This page is generated from the programs' own declarations. Do not edit it: change the declaration, then run
` + "`go test ./deploy/test/docs -run Configuration -update`" + `.

A setting is a flag, an environment variable or a key of a YAML file (` + "`--config FILE`" + `), named
like the flag. A flag wins over the environment, the environment over the file, the file over the
default. The settings of several programs are described at the first one; the others name their
variables. Unknown keys of a file are errors. The values of a list are separated by commas. A duration is
written like ` + "`90s`, `10m` or `24h`" + `. A switch is off by default. A setting without another form is a
text. A file's values are read as flags are, so ` + "`01` and `1.50`" + ` stay as written.

The settings that nearly everybody sets come first, the others by groups. [registryctl.md](registryctl.md) has the
settings of the program for operators and brokers.

All programs also obey the standard variables of OpenTelemetry (` + "`OTEL_*`" + `, see
[monitoring.md](monitoring.md#metrics-and-traces)) and of Go (` + "`GOMEMLIMIT`, `GOGC`, `GOMAXPROCS`" + `).
`

// programs lists the programs in the order of docs/configuration.md.
var programs = []string{"registry", "gateway", "assetsvc", "filesvc", "searchsvc", "authsvc"}

// tool is the program for operators and brokers. It has a separate document, docs/registryctl.md.
const tool = "registryctl"

// ofTool is the beginning of docs/registryctl.md.
const ofTool = `# registryctl

This page is generated from the program's own declarations, as [configuration.md](configuration.md) is.
[operations.md](operations.md#registryctl) says how to use it.
`

// Configuration returns the text of docs/configuration.md for the programs in the
// directory bin.
func Configuration(ctx context.Context, bin string) (string, error) {
	return describeAll(ctx, bin, introduction, programs...)
}

// Tool returns the text of docs/registryctl.md for the program in the directory bin.
func Tool(ctx context.Context, bin string) (string, error) {
	return describeAll(ctx, bin, ofTool, tool)
}

func describeAll(ctx context.Context, bin, introduction string, names ...string) (string, error) {
	var b strings.Builder
	b.WriteString(introduction)
	told := map[string]string{}
	for _, name := range names {
		p, err := settingsOf(ctx, bin, name)
		if err != nil {
			return "", err
		}
		write(&b, p, told)
	}
	return b.String(), nil
}

// settingsOf runs a program to get its settings.
func settingsOf(ctx context.Context, bin, name string) (p config.Program, err error) {
	text, err := exec.CommandContext(ctx, filepath.Join(bin, name), "--print-settings").Output()
	if err != nil {
		return p, fmt.Errorf("ask %s for its settings: %w", name, err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read the settings of %s: %w", name, err)
	}
	return p, nil
}

// write writes a program's settings. The parameter `told` maps the description of a setting, without its variable, to
// the first command that has it. Later commands only name such a setting. write adds the settings of the program.
func write(b *strings.Builder, p config.Program, told map[string]string) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", p.Name, fold("", "", p.Help))
	for _, c := range p.Commands {
		title := strings.TrimSpace(p.Name + " " + c.Name)
		repeated := map[string][]string{}
		c.Settings = slices.DeleteFunc(c.Settings, func(s config.Setting) bool {
			name := "`" + cmp.Or(s.Env, "--"+s.Name) + "`"
			s.Env = ""
			first, isTold := told[describe(s)]
			if isTold && first != title {
				repeated[first] = append(repeated[first], name)
				return true
			}
			told[describe(s)] = title
			return false
		})
		switch {
		case c.Name != "":
			fmt.Fprintf(b, "\n### %s %s\n\n%s\n\n", p.Name, c.Name, fold("", "", c.Help))
		case len(p.Commands) > 1:
			fmt.Fprintf(b, "\n### %s, all commands\n\n", p.Name)
		default:
			b.WriteString("\n")
		}
		for i, group := range groupsOf(c.Settings) {
			if group != "" {
				fmt.Fprintf(b, "%s*%s*\n\n", strings.Repeat("\n", min(i, 1)), group)
			}
			for _, s := range c.Settings {
				if s.Group == group {
					b.WriteString(fold("- ", "  ", describe(s)) + "\n")
				}
			}
		}
		for _, first := range slices.Sorted(maps.Keys(repeated)) {
			fmt.Fprintf(b, "\n%s\n", fold("", "", "As in `"+first+"`: "+strings.Join(repeated[first], ", ")+"."))
		}
		if len(c.Settings)+len(repeated) == 0 {
			b.WriteString("No settings.\n")
		}
	}
}

// groupsOf returns the groups of settings in the order in which they appear. The group "" comes first.
func groupsOf(settings []config.Setting) (groups []string) {
	for _, s := range settings {
		switch {
		case slices.Contains(groups, s.Group):
		case s.Group == "":
			groups = slices.Insert(groups, 0, "")
		default:
			groups = append(groups, s.Group)
		}
	}
	return groups
}

// describe returns a paragraph that describes a setting.
func describe(s config.Setting) string {
	var facts []string
	if form := unit(s); form != "text" || s.Env == "" {
		facts = append(facts, form)
	}
	if s.Env != "" {
		facts = append([]string{"`" + s.Env + "`"}, facts...)
	}
	switch {
	case s.Required:
		facts = append(facts, "required")
	case s.Default != "":
		facts = append(facts, "default `"+s.Default+"`")
	}
	return fmt.Sprintf("**`--%s`** (%s). %s", s.Name, strings.Join(facts, ", "), sentence(s.Help))
}

// unit returns the form of a setting's value, and its unit if it has one.
func unit(s config.Setting) string {
	switch {
	case s.Enum != "":
		return "one of `" + strings.ReplaceAll(s.Enum, ",", "`, `") + "`"
	case strings.HasPrefix(s.Type, "int") && strings.Contains(strings.ToLower(s.Help), "bytes"):
		return "bytes"
	case strings.HasPrefix(s.Type, "int") && strings.Contains(s.Help, " a second "):
		return "requests a second"
	}
	if form, known := forms[s.Type]; known {
		return form
	}
	return "text"
}

// forms maps Go types to the names of the forms that their values have.
var forms = map[string]string{
	"bool": "switch", "int": "number", "int64": "number", "time.Duration": "duration", "duration": "duration",
	"kong.ConfigFlag": "file", "slog.Level": "level",
	"[]string": "list", "strings": "list", "[]netip.Prefix": "list of networks",
	"ratelimit.Table": "name or table", "map[string]string": "list of `VERSION=DATE`",
}

// sentence returns a help text as a sentence with a capital letter. A help text that begins with a value and a
// colon keeps its first letter.
func sentence(help string) string {
	if first, _, _ := strings.Cut(help, " "); !strings.HasSuffix(first, ":") {
		help = strings.ToUpper(help[:1]) + help[1:]
	}
	if strings.HasSuffix(help, ".") {
		return help
	}
	return help + "."
}

// width is the length of the longest line in the document, in characters.
const width = 136

// fold breaks a text into lines. The parameter `first` is put before the first line, and the parameter `next`
// before each further line.
func fold(first, next, text string) string {
	var lines []string
	line := first
	for _, word := range strings.Fields(text) {
		if len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = next
		}
		if line != first && line != next {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
