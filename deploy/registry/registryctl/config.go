package registryctl

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"asset-registry/shared/config"
)

// settings are the addresses and API keys for the registry. An empty field is not set.
type settings struct {
	URL string `yaml:"url" env:"REGISTRYCTL_URL" help:"Address of the registry, by default http://127.0.0.1:8080."`
	Key string `yaml:"key" env:"REGISTRYCTL_KEY" help:"API key for assets."`

	AdminURL string `yaml:"admin-url" env:"REGISTRYCTL_ADMIN_URL" help:"Admin API, by default http://127.0.0.1:8079."`
	AdminKey string `yaml:"admin-key" env:"REGISTRYCTL_ADMIN_KEY" help:"API key for the admin API."`
}

// override replaces each field of s for which the argument `more` has a value.
func (s *settings) override(more settings) {
	s.URL, s.Key = cmp.Or(more.URL, s.URL), cmp.Or(more.Key, s.Key)
	s.AdminURL, s.AdminKey = cmp.Or(more.AdminURL, s.AdminURL), cmp.Or(more.AdminKey, s.AdminKey)
}

// load resolves the settings. c has the flags, and values of the environment for flags that are not given. Both
// override the config file, and the config file overrides the defaults.
func (p *program) load(c commands) error {
	p.config, p.output = c.Config, c.Output
	file, err := p.readConfig()
	if err != nil {
		return err
	}
	p.urlGiven = file.URL != "" || c.Settings.URL != ""
	p.settings = settings{URL: "http://127.0.0.1:8080", AdminURL: "http://127.0.0.1:8079"}
	p.override(file)
	p.override(c.Settings)
	return errors.Join(checkAddress("--url", p.URL), checkAddress("--admin-url", p.AdminURL))
}

// configDir returns the default directory for the config file and for remembered heads of audit logs.
func configDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find your configuration directory: %w", err)
	}
	return filepath.Join(dir, "registryctl"), nil
}

// defaultConfig returns the path of the config file that --config replaces, or "" for a user without a home directory.
func defaultConfig() string {
	dir, err := configDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "config.yaml")
}

// readConfig reads the config file. A missing file is an error only if --config
// names it. A file that other users can access is refused, because it holds keys.
func (p *program) readConfig() (s settings, err error) {
	path := cmp.Or(p.config, defaultConfig())
	if path == "" {
		return s, nil
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
		return s, fmt.Errorf("other users can access config file %s, which holds keys (mode %04o): chmod 600 %s",
			path, mode, path)
	}
	if err := config.ReadYAML(file, &s); err != nil {
		// The YAML error is not shown, because it quotes the file, which has keys.
		return s, fmt.Errorf("config file %s must be YAML with url, key, admin-url and admin-key only", path)
	}
	return s, nil
}
