// Package registryctl is the command line of those who administer the registry,
// and of brokers: a client of the admin API and of the public one.
package registryctl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// settings are what every command needs; the later of these win: defaults, the
// config file, the environment, flags.
type settings struct {
	URL      string `yaml:"url"`
	Key      string `yaml:"key"`
	AdminURL string `yaml:"admin-url"`
	AdminKey string `yaml:"admin-key"`
}

// program is what the commands share.
type program struct {
	in     io.Reader
	out    io.Writer
	env    func(string) string
	config string
	output string
	flags  settings
	settings
}

// The formats of output.
const (
	asTable = "table"
	asJSON  = "json"
)

// New returns the command with all its subcommands.
func New(in io.Reader, out io.Writer, env func(string) string) *cobra.Command {
	p := &program{in: in, out: out, env: env}
	root := &cobra.Command{
		Use:   "registryctl",
		Short: "Administer the asset registry, and work with its assets",
		Long: `Administer the asset registry, and work with its assets.

Addresses and API keys come from flags, from the environment (REGISTRYCTL_URL,
REGISTRYCTL_KEY, REGISTRYCTL_ADMIN_URL, REGISTRYCTL_ADMIN_KEY) or from a YAML file
with url, key, admin-url and admin-key that nobody else may read. Who lists
processes sees flags: keys are better kept in the file.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return p.load() },
	}
	root.SetOut(out)
	flags := root.PersistentFlags()
	flags.StringVar(&p.config, "config", "", "YAML file with addresses and keys, of mode 0600 (default: registryctl/config.yaml in your configuration directory)")
	flags.StringVarP(&p.output, "output", "o", asTable, "how to print: table or json")
	flags.StringVar(&p.flags.URL, "url", "", "address of the registry (default http://127.0.0.1:8080)")
	flags.StringVar(&p.flags.Key, "key", "", "API key for assets")
	flags.StringVar(&p.flags.AdminURL, "admin-url", "", "address of the admin API (default http://127.0.0.1:8079)")
	flags.StringVar(&p.flags.AdminKey, "admin-key", "", "API key for the admin API")
	if err := root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{asTable, asJSON}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag: a mistake in the name
	}
	root.AddCommand(p.brokers(), p.keys(), p.audit(), p.assets())
	return root
}

// newGroup is a command that has others, and does nothing by itself.
func newGroup(name, short string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("there is no command %q of %s (registryctl %s --help)", args[0], name, name)
		}
		return cmd.Help()
	}}
}

// load finds out where to call and as whom.
func (p *program) load() error {
	if p.output != asTable && p.output != asJSON {
		return fmt.Errorf("--output is %s or %s, not %q", asTable, asJSON, p.output)
	}
	p.settings = settings{URL: "http://127.0.0.1:8080", AdminURL: "http://127.0.0.1:8079"}
	file, err := p.readConfig()
	if err != nil {
		return err
	}
	environment := settings{p.env("REGISTRYCTL_URL"), p.env("REGISTRYCTL_KEY"), p.env("REGISTRYCTL_ADMIN_URL"), p.env("REGISTRYCTL_ADMIN_KEY")}
	for _, more := range []settings{file, environment, p.flags} {
		for _, s := range []struct{ to, from *string }{{&p.URL, &more.URL}, {&p.Key, &more.Key}, {&p.AdminURL, &more.AdminURL}, {&p.AdminKey, &more.AdminKey}} {
			if *s.from != "" {
				*s.to = *s.from
			}
		}
	}
	return nil
}

// configDir is where files of ours are, unless they are named.
func configDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find your configuration directory: %w", err)
	}
	return filepath.Join(dir, "registryctl"), nil
}

func (p *program) readConfig() (s settings, err error) {
	path := p.config
	if path == "" {
		dir, err := configDir()
		if err != nil {
			return s, nil // there is no such directory for who has no home: nothing is configured
		}
		path = filepath.Join(dir, "config.yaml")
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && p.config == "" {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read config file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return s, fmt.Errorf("read config file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return s, fmt.Errorf("config file %s may be used by others (mode %04o), and holds keys: chmod 600 %s", path, mode, path)
	}
	if err := yaml.NewDecoder(file, yaml.DisallowUnknownField()).Decode(&s); err != nil && !errors.Is(err, io.EOF) { // EOF: an empty file
		return s, fmt.Errorf("config file %s: it may hold url, key, admin-url and admin-key, and nothing else", path) // the error would quote the file
	}
	return s, nil
}
