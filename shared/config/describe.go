package config

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
)

// Program describes a program by its declared settings. --print-settings prints it
// as JSON; docs/configuration.md is generated from that.
type Program struct {
	Name     string    `json:"name"`
	Help     string    `json:"help"`
	Commands []Command `json:"commands"`
}

// Command describes one command of a program, by the name that runs it. The
// settings that all commands share are those of the command without a name.
type Command struct {
	Name     string    `json:"name"`
	Help     string    `json:"help"`
	Settings []Setting `json:"settings"`
}

// Setting describes one setting. Optional members are empty.
type Setting struct {
	Name     string `json:"name"`              // of the flag, without hyphens in front, and of the key in a file
	Env      string `json:"env"`               // name of the environment variable
	Type     string `json:"type"`              // Go type of the value
	Default  string `json:"default,omitempty"` // as it is written in a flag
	Enum     string `json:"enum,omitempty"`    // accepted values, separated by commas
	Required bool   `json:"required,omitempty"`
	Help     string `json:"help"`
}

// printSettings is the flag that prints the Program and ends the process.
type printSettings bool

// BeforeReset prints the settings before any of them is read, so that required
// ones may be missing. Kong calls it.
func (printSettings) BeforeReset(app *kong.Kong) error {
	text, err := json.MarshalIndent(describe(app.Model), "", "  ")
	if err != nil {
		return fmt.Errorf("print settings: %w", err)
	}
	fmt.Fprintf(app.Stdout, "%s\n", text)
	app.Exit(0)
	return nil
}

func describe(app *kong.Application) Program {
	p := Program{Name: app.Name, Help: app.Help}
	if shared := settingsOf(app.Node); len(shared) > 0 {
		p.Commands = append(p.Commands, Command{Settings: shared})
	}
	for _, command := range app.Children {
		p.Commands = append(p.Commands, Command{Name: command.Name, Help: command.Help, Settings: settingsOf(command)})
	}
	return p
}

// settingsOf returns the settings that a node declares itself.
func settingsOf(n *kong.Node) []Setting {
	var all []Setting
	for _, flag := range n.Flags {
		if flag.Hidden || flag.Name == "help" {
			continue
		}
		s := Setting{
			Name: flag.Name, Type: typeName(flag.Target.Type()), Default: flag.Default,
			Enum: flag.Enum, Required: flag.Required, Help: flag.Help,
		}
		if len(flag.Envs) > 0 {
			s.Env = flag.Envs[0]
		}
		all = append(all, s)
	}
	return all
}

// typeName returns the name of the type that a setting has when it is set.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.String()
}
