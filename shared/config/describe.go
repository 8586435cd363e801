package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Program describes a program by its declared settings. --print-settings prints it as JSON;
// docs/configuration.md is generated from this JSON.
type Program struct {
	Name     string    `json:"name"`
	Help     string    `json:"help"`
	Commands []Command `json:"commands"`
}

// Command describes one command of a program, by the name that runs it. The
// settings that all commands share belong to the command without a name.
type Command struct {
	Name     string    `json:"name"`
	Help     string    `json:"help"`
	Settings []Setting `json:"settings"`
}

// Setting describes one setting. Members that do not apply to it are empty.
type Setting struct {
	Name     string `json:"name"`              // name of the flag without leading hyphens, and of the key in a file
	Env      string `json:"env"`               // name of the environment variable
	Type     string `json:"type"`              // Go type of the value
	Default  string `json:"default,omitempty"` // the default, as a user would write it after the flag
	Enum     string `json:"enum,omitempty"`    // accepted values, separated by commas
	Required bool   `json:"required,omitempty"`
	Help     string `json:"help"`
	Group    string `json:"group,omitempty"` // "": the settings that nearly everybody sets
}

// PrintSettings is the type of a flag that prints the Program as JSON and ends the process. Parse declares this
// flag. A program that uses kong without Parse must declare the flag itself.
type PrintSettings bool

// BeforeReset prints the settings. Kong calls it before any setting is read, so required settings may be missing.
func (PrintSettings) BeforeReset(app *kong.Kong) error {
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
	p.Commands = append(p.Commands, commandsOf(app.Node, "")...)
	return p
}

// commandsOf returns the commands below a node that have no commands themselves.
// prefix is the node's own name and a blank, or "" for the program.
func commandsOf(n *kong.Node, prefix string) (all []Command) {
	for _, command := range n.Children {
		name := prefix + command.Name
		switch {
		case command.Hidden:
		case len(command.Children) > 0:
			all = append(all, commandsOf(command, name+" ")...)
		default:
			all = append(all, Command{Name: name, Help: command.Help, Settings: settingsOf(command)})
		}
	}
	return all
}

// settingsOf returns the settings that a node declares itself.
func settingsOf(n *kong.Node) []Setting {
	var all []Setting
	for _, flag := range n.Flags {
		if flag.Hidden || flag.Name == "help" || flag.Name == "version" {
			continue
		}
		s := Setting{
			Name: flag.Name, Type: typeName(flag.Target.Type()), Default: flag.Default,
			Enum: flag.Enum, Required: flag.Required, Help: flag.Help,
		}
		if flag.Group != nil {
			s.Group = flag.Group.Key
		}
		if len(flag.Envs) > 0 {
			s.Env = flag.Envs[0]
		}
		all = append(all, s)
	}
	return all
}

// typeName returns the name of a setting's type. An optional setting is a pointer. Its type is the type to
// which the pointer points.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.String()
}

// groups sort the settings in --help and in docs/configuration.md. The settings that nearly everybody sets have no
// group, and come first. A name has the same group in every program.
var groups = []struct{ title, names string }{
	{"TLS", "tls-cert tls-key hsts plain-addr acme-directory acme-contact acme-roots acme-addr"},
	{"Keys", "keys-file transfer-lifetime key-ttl"},
	{"Sign-in", "oidc-issuer oidc-name oidc-client oidc-secret-file oidc-console oidc-roles oidc-scopes"},
	{"Public log", "log-key-file log-policy public-key"},
	{"Assets", "server-id zone asset-types code-lists hide"},
	{"Snapshots", "snapshot-dir snapshot-interval snapshot-keep whole-copies data-licence data-publisher"},
	{"Files", "max-file broker-files waiting-files"},
	{"Site", "synonyms map-url map-search-url sale-url"},
	{"Webhooks", "webhook-networks webhook-http"},
	{"Limits", "limits limits-redis limits-away limits-gateways no-limits limit-address-list limit-address-read " +
		"limit-address-write limit-key-list limit-key-read limit-key-write max-concurrent client-streams client-segments"},
	{"Clients", "cors-origins deprecated sunset"},
	{"Server", "drain-delay timeout read-timeout list-timeout max-body memory store-timeout store-lease " +
		"fresh-reads trusted-proxies admin-trusted-proxies check-interval max-behind"},
}

// Groups returns the names of all settings that have a group.
func Groups() (names []string) {
	for _, g := range groups {
		names = append(names, strings.Fields(g.names)...)
	}
	return names
}

// group puts each setting of a program into its group, if it has a group.
func group(parser *kong.Kong) error {
	return kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, isFlag := node.(*kong.Flag); isFlag {
			for _, g := range groups {
				if slices.Contains(strings.Fields(g.names), flag.Name) {
					flag.Group = &kong.Group{Key: g.title, Title: g.title + ":"}
				}
			}
		}
		return next(nil)
	})
}

// HelpTexts is a settings struct with help texts that are too long for a tag. The method returns the texts by name.
// A tag refers to a text as help:"${name}". A name is unique in a command, and has letters, digits and underscores.
type HelpTexts interface {
	HelpTexts() map[string]string
}

// helpTexts returns the help texts of a settings struct and of all structs in it.
func helpTexts(settings reflect.Value) kong.Vars {
	texts := kong.Vars{}
	if settings.Kind() != reflect.Struct || !settings.CanInterface() {
		return texts
	}
	if s, ok := settings.Interface().(HelpTexts); ok {
		maps.Copy(texts, s.HelpTexts())
	}
	for i := range settings.NumField() {
		maps.Copy(texts, helpTexts(settings.Field(i)))
	}
	return texts
}
