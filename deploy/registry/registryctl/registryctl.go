// Package registryctl is the command-line client of the registry. Operators call the admin API with it; brokers
// read and write assets. Its commands print tables or JSON.
package registryctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/alecthomas/kong"

	"asset-registry.example/client"

	"asset-registry/shared/config"
	"asset-registry/shared/errs"
)

// program holds the resolved settings and the streams that commands use.
type program struct {
	in     io.Reader
	out    io.Writer
	errOut io.Writer
	config string
	output string
	settings
	lang     string // language of an import's messages; "": English
	urlGiven bool   // URL was set, so it is not the default
	faults   int    // number of faults that were printed or left out
}

// The output formats.
const (
	asTable = "table"
	asJSON  = "json"
)

// commands declares the flags and commands. Config and Output may be used with every command.
type commands struct {
	Build  config.PrintVersion `name:"version" hidden:"" help:"Print the version of registryctl and exit."`
	Config string              `placeholder:"FILE" in:"later" help:"YAML file with addresses and keys, of mode 0600."`
	Output string              `short:"o" default:"table" complete:"table,json" help:"Output format: table or json."`

	Settings settings             `embed:""`
	Print    config.PrintSettings `name:"print-settings" hidden:"" help:"Print every setting as JSON and exit."`

	Assets       assetCommands  `cmd:"" help:"Read and write assets."`
	Audit        auditCommands  `cmd:"" help:"Read and check the audit log of brokers and keys."`
	Brokers      brokerCommands `cmd:"" help:"Manage brokers. A broker owns assets and has any number of API keys."`
	Files        fileCommands   `cmd:"" help:"Manage files of documents."`
	Find         findAnything   `cmd:"" help:"Find assets, brokers and keys by the admin API."`
	Keys         keyCommands    `cmd:"" help:"Manage API keys."`
	Log          logCommands    `cmd:"" help:"Manage the keys of a public log."`
	Me           showMe         `cmd:"" help:"Show whose API key is used, and what its rate limits leave."`
	Erase        eraseRevisions `cmd:"" help:"Erase the content of past revisions of an asset, for good."`
	Prove        proveAsset     `cmd:"" help:"Print the proof of an asset's change in the public log, for a file."`
	copyCommands `embed:""`
	Verify       verifyLog        `cmd:"" help:"Verify a proof file, or the whole public log."`
	Release      verifyRelease    `cmd:"" name:"verify-release" help:"Verify the files of a release by signed checksums."`
	Version      showVersion      `cmd:"" help:"Print the version of registryctl, and the API versions of the registry."`
	Webhooks     webhookCommands  `cmd:"" help:"Manage webhooks, which send the changes of the feed to an address."`
	Completion   completionScript `cmd:"" help:"Print a completion script for your shell."`
	Help         help             `cmd:"" passthrough:"" help:"Print the help of a command."`
	Complete     complete         `cmd:"" passthrough:"" hidden:"" name:"__complete"`
}

const description = `Administer the asset registry, and read and write its assets.

Addresses and API keys come from flags, from the environment (REGISTRYCTL_URL, REGISTRYCTL_KEY,
REGISTRYCTL_ADMIN_URL, REGISTRYCTL_ADMIN_KEY), or from a YAML file with url, key, admin-url and admin-key.
Flags override the environment, and the environment overrides the file. The default file is
registryctl/config.yaml in your configuration directory. Only you may have access to it.
Keep keys in the file: every user of the machine can see flags in the process list.`

// Run parses args, which do not contain the program's name, and runs the command. Messages that are not output go
// to errOut. Without a command, or with only the name of a group, it prints help. --help prints help and exits the
// process with 0. ExitCode returns the exit code for an error. An error before the first request counts as a fault
// of the command line, except if isVerdict returns true for it.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) error {
	var asks atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { asks.Store(true) }})
	err := parseAndRun(ctx, args, &program{in: in, out: out, errOut: errOut})
	if err == nil || asks.Load() || isVerdict(err) {
		return err
	}
	return usageError{err}
}

// parseAndRun parses args and runs their command.
func parseAndRun(ctx context.Context, args []string, p *program) error {
	var c commands
	parser, err := newParser(&c, p.out)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return explain(err)
	}
	if err := missingValue(parsed, args); err != nil {
		return err
	}
	if err := checkValues(parsed, namedFile{name: "your config file", path: defaultConfig()}); err != nil {
		return err
	}
	if err := p.load(c); err != nil {
		return err
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	anyone := func() (*client.Client, error) { return p.public(false) }
	holder := func() (keyed, error) {
		c, err := p.public(true)
		return keyed{c}, err
	}
	if err := errors.Join(parsed.BindToProvider(anyone), parsed.BindToProvider(holder)); err != nil {
		return err
	}
	return parsed.Run(p)
}

// keyed is a client of the public API that has an API key.
type keyed struct{ *client.Client }

// helpOf prints the help of a command. For a group with a default command, it prints the help of that command
// too.
func helpOf(o kong.HelpOptions, of *kong.Context) error {
	group := of.Selected()
	if group == nil || group.DefaultCmd == nil {
		return kong.DefaultHelpPrinter(o, of)
	}
	of.Path = append(of.Path, &kong.Path{Parent: group, Command: group.DefaultCmd})
	if err := kong.DefaultHelpPrinter(o, of); err != nil {
		return err
	}
	for _, other := range group.Children {
		if other != group.DefaultCmd {
			fmt.Fprintf(of.Stdout, "\n%s: %s\n", other.FullPath(), other.Help)
		}
	}
	return nil
}

func newParser(c *commands, out io.Writer) (*kong.Kong, error) {
	parser, err := kong.New(c, append(config.Types(),
		kong.Name("registryctl"),
		kong.Description(description),
		kong.Help(helpOf),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, NoAppDescFormat: true}),
		kong.Vars{
			"mode":  "'test' shows test assets only, '_all_' adds them. By default they are left out.",
			"roles": "broker (a new key's default), concierge, administrator, operator or auditor.",
		},
		kong.WithHyphenPrefixedParameters(true), // an offset or a token may start with a hyphen
		kong.Writers(out, out),
	)...)
	return parser, errs.In(err, "declare commands")
}

// explain handles a parser's error. If the command line names a group without a
// command, explain prints the group's help and returns nil. If a command lacks
// its argument, the error names the argument.
func explain(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context.Error != nil { // Context.Error is nil if a word is missing
		return err
	}
	node := parse.Context.Selected()
	if node == nil || len(node.Children) > 0 {
		return parse.Context.PrintUsage(false)
	}
	for _, argument := range node.Positional {
		if argument.Required && !argument.Set {
			return fmt.Errorf("%s takes 1 argument: %s", parse.Context.Command(), strings.ToUpper(argument.Name))
		}
	}
	return err
}

// missingValue returns an error if the last word is a flag that lacks its value. Kong does not notice this: because
// of the option WithHyphenPrefixedParameters, it sets the value to "".
func missingValue(parsed *kong.Context, args []string) error {
	flag := parsed.Path[len(parsed.Path)-1].Flag
	if flag == nil || flag.IsBool() {
		return nil
	}
	if last := args[len(args)-1]; last == "--"+flag.Name || last == "-"+string(flag.Short) {
		return fmt.Errorf("%s needs a value", last)
	}
	return nil
}

type help struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// Run prints the help and exits the process.
func (h help) Run(parsed *kong.Context) error {
	_, err := parsed.Kong.Parse(append(h.Command, "--help"))
	return err
}

// The exit codes of registryctl.
const (
	exitRefused   = 1 // the registry refused, or something is forged or damaged
	exitUsage     = 2 // the command line, a setting, or a file named in them is wrong; nothing was sent
	exitNoAnswer  = 3 // the registry cannot be reached, or cannot answer now
	exitCompleted = 0
)

// usageError is an error that occurred before the command had sent anything.
type usageError struct{ error }

// Unwrap returns the error itself.
func (e usageError) Unwrap() error { return e.error }

// verdict is the error of a command that has found a fault in a file, and has sent no request.
type verdict struct{ error }

// Unwrap returns the error itself.
func (v verdict) Unwrap() error { return v.error }

// isVerdict takes an error that came before the first request. It reports whether the error is about forged or
// damaged data, or about a failed write. Any other error is about the command line.
func isVerdict(err error) bool {
	_, forged := errors.AsType[verdict](err)
	file, ofFile := errors.AsType[*fs.PathError](err)
	damaged := forged || isDamaged(err)
	return damaged || ofFile && file.Op == "write" // the disk failed, or the reader of the output has gone
}

// statusError is an answer of the admin API with an error status.
type statusError struct {
	status int
	text   string
}

// Error returns the text of the refusal.
func (e *statusError) Error() string { return e.text }

// ExitCode returns the exit code of a process whose Run returned err.
func ExitCode(err error) int {
	status := client.StatusOf(err)
	if refused, ok := errors.AsType[*statusError](err); ok {
		status = refused.status
	}
	_, isUsage := errors.AsType[usageError](err)
	_, isNetwork := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
		return exitCompleted
	case isUsage:
		return exitUsage
	case isAway(status), status == 0 && isNetwork:
		return exitNoAnswer
	}
	return exitRefused
}

// isAway reports whether a status means that the registry cannot answer now: it cannot reach something that it
// needs, or a proxy cannot reach the registry.
func isAway(status int) bool {
	return slices.Contains(
		[]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status)
}
