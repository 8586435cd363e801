package registryctl

import (
	"errors"
	"strings"

	"asset-registry/shared/logkey"
)

type logCommands struct {
	Key logKeyCommands `cmd:"" help:"Manage the secret keys of a public log, which are in a file."`
}

type logKeyCommands struct {
	New    newLogKey    `cmd:"" help:"Make a key file with one key, and print the public key."`
	Show   showLogKeys  `cmd:"" help:"Print the public keys of a key file, the newest first."`
	Rotate rotateLogKey `cmd:"" help:"Put a new key in front of the others, and print all public keys."`
	Retire retireLogKey `cmd:"" help:"Remove all keys but the newest, and print its public key."`
}

// logKeyFile is the argument of commands about a key file.
type logKeyFile struct {
	File string `arg:"" out:"" help:"Key file of the log, as assetsvc reads it."`
}

// print prints the public keys of the file, unless a change of it has failed.
func (f logKeyFile) print(p *program, changed error) error {
	if changed != nil {
		return changed
	}
	keys, err := logkey.Read(f.File)
	if err != nil {
		return err
	}
	var all struct {
		Origin string   `json:"origin"`
		Keys   []string `json:"keys"`
	}
	all.Origin = keys[0].Public().Name()
	for _, key := range keys {
		all.Keys = append(all.Keys, key.Public().String())
	}
	if p.output == asJSON {
		return p.printJSON(all, "  ")
	}
	return p.note("%s", strings.Join(all.Keys, "\n"))
}

type newLogKey struct {
	logKeyFile `embed:""`
	Origin     string `help:"Name of the log. By default a new one below the registry's address, HOST/log/1a2b3c4d."`
}

// Run makes a key file. If the file exists, it returns an error.
func (c newLogKey) Run(p *program) error {
	if c.Origin == "" {
		if !p.urlGiven {
			return errors.New("name the registry's public address with --url, or the log with --origin")
		}
		c.Origin = logkey.NewOrigin(p.URL)
	}
	return c.print(p, logkey.Create(c.File, c.Origin))
}

type showLogKeys struct {
	logKeyFile `embed:""`
}

// Run prints the public keys.
func (c showLogKeys) Run(p *program) error { return c.print(p, nil) }

type rotateLogKey struct {
	logKeyFile `embed:""`
}

// Help explains how to rotate the keys.
func (rotateLogKey) Help() string { return rotationHelp }

const rotationHelp = `1. "log key rotate FILE" adds a key. Restart each service that reads the file. Checkpoints then
carry a signature of each key, so readers with either public key accept them.

2. Give the new public key to all readers and witnesses, and wait until they use it.

3. "log key retire FILE" removes the older keys. Restart the services again.`

// Run puts a new key in front of the others.
func (c rotateLogKey) Run(p *program) error { return c.print(p, logkey.Rotate(c.File)) }

type retireLogKey struct {
	logKeyFile `embed:""`
}

// Help explains how to rotate the keys.
func (retireLogKey) Help() string { return rotationHelp }

// Run removes all keys except the newest.
func (c retireLogKey) Run(p *program) error { return c.print(p, logkey.Retire(c.File)) }
