package registryctl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"asset-registry/deploy/registry/witness"
	"asset-registry/shared/durable"
	"asset-registry/shared/logkey"
	"asset-registry/shared/translog"
)

// newLogPolicy makes the policy files of a log, and of witnesses on the same machine.
type newLogPolicy struct {
	File    string   `arg:"" out:"" help:"Policy file of the log. An existing one is replaced."`
	LogKey  string   `required:"" placeholder:"FILE" in:"" help:"Key file of the log, as assetsvc reads it."`
	Witness []string `required:"" placeholder:"DIR=ADDRESS" help:"Directory and address of a witness. May be repeated."`
	Owner   int      `default:"-1" least:"-1" help:"User id that gets the directories of witnesses. By default they stay."`
}

// Help describes the files that the command makes.
func (newLogPolicy) Help() string {
	return `Each directory gets a key, unless it has one, and a policy for "registryctl witness": the files "key"
and "policy". The witness has the name of its directory. FILE demands the cosignature of each witness.

Run the command again after a change of the log's keys, and restart its witnesses and the log.`
}

// place is where newLogPolicy puts a witness.
type place struct {
	dir, address string
	key          translog.PublicKey
}

// The files in the directory of a witness, and the name of the group that contains all witnesses.
const (
	witnessKeyFile = "key"
	witnessPolicy  = "policy"
	witnessGroup   = "witnesses"

	publicMode = 0o644 // mode of policy files
)

// Run makes the keys of the witnesses and writes the policies. It writes the policy of the log last.
func (c newLogPolicy) Run(p *program) error {
	files := []namedFile{{"FILE", c.File, true}, {"--log-key", c.LogKey, false}}
	for _, text := range c.Witness {
		dir, _, _ := strings.Cut(text, "=")
		for _, name := range []string{witnessKeyFile, witnessPolicy} {
			files = append(files, namedFile{"the " + name + " of the witness " + text, filepath.Join(dir, name), true})
		}
	}
	if err := distinct(files...); err != nil {
		return err
	}
	keys, err := logkey.Read(c.LogKey)
	if err != nil {
		return err
	}
	var logs strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&logs, "log %s\n", key.Public())
	}
	var places []place
	for _, text := range c.Witness {
		w, err := c.prepare(text, logs.String()+"quorum none\n")
		if err != nil {
			return err
		}
		places = append(places, w)
	}
	text := []byte(logs.String() + witnessLines(places))
	if _, err := translog.ParsePolicy(text); err != nil {
		return err
	}
	if err := durable.WriteFile(c.File, text, publicMode); err != nil {
		return err
	}
	_, err = p.out.Write(text)
	return err
}

// prepare makes the key and the policy of a witness.
func (c newLogPolicy) prepare(text, policy string) (place, error) {
	dir, address, found := strings.Cut(text, "=")
	if !found || dir == "" || address == "" {
		return place{}, fmt.Errorf("--witness must be DIR=ADDRESS, got %q", text)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return place{}, err
	}
	key, err := witness.ReadKey(filepath.Join(dir, witnessKeyFile), filepath.Base(dir))
	if err != nil {
		return place{}, err
	}
	if err := durable.WriteFile(filepath.Join(dir, witnessPolicy), []byte(policy), publicMode); err != nil {
		return place{}, err
	}
	if c.Owner >= 0 {
		for _, file := range []string{dir, filepath.Join(dir, witnessKeyFile), filepath.Join(dir, witnessPolicy)} {
			if err := os.Chown(file, c.Owner, c.Owner); err != nil {
				return place{}, err
			}
		}
	}
	return place{dir, address, key.Public()}, nil
}

// witnessLines returns the lines about the witnesses for the policy of the log.
func witnessLines(places []place) string {
	var text strings.Builder
	names := make([]string, len(places))
	for i, w := range places {
		names[i] = w.key.Name()
		fmt.Fprintf(&text, "witness %s %s %s\n", names[i], w.key, w.address)
	}
	fmt.Fprintf(&text, "group %s all %s\nquorum %s\n", witnessGroup, strings.Join(names, " "), witnessGroup)
	return text.String()
}
