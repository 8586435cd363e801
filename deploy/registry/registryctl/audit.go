package registryctl

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"asset-registry/shared/adminapi"
)

func (p *program) audit() *cobra.Command {
	group := newGroup("audit", "Who changed brokers and keys, when and from where")

	var after int64
	var last int
	list := &cobra.Command{Use: "list", Short: "List changes, the oldest first", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		entries := []adminapi.Entry{}
		query := url.Values{"limit": {"1000"}, "after": {strconv.FormatInt(after, 10)}}
		if err := all(cmd.Context(), p, "/audit", query, func(page []adminapi.Entry) { entries = append(entries, page...) }); err != nil {
			return err
		}
		if last > 0 && len(entries) > last {
			entries = entries[len(entries)-last:]
		}
		var rows []row
		for _, e := range entries {
			rows = append(rows, row{strconv.FormatInt(e.Seq, 10), stamp(&e.Time), e.Who, e.From, e.Action, e.Subject})
		}
		return p.print(adminapi.Response[[]adminapi.Entry]{Data: entries}, row{"SEQ", "TIME", "WHO", "FROM", "ACTION", "SUBJECT"}, rows...)
	}}
	list.Flags().Int64Var(&after, "after", 0, "only those after this number")
	list.Flags().IntVar(&last, "last", 0, "only the last so many")

	var known, remember string
	verify := &cobra.Command{
		Use: "verify", Short: "Check that nothing was changed, taken out or cut off", Args: cobra.NoArgs,
		Long: `Check that nothing was changed, taken out or cut off.

The whole log is fetched and its chain of hashes worked out anew; the server checks
the seals, and that keys and brokers are as the log says. Whoever can write into the
store and knows the registry's secret could still make the log end earlier, or make
another: so the head found is remembered, and the next check must come past it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if remember == "" {
				var err error
				if remember, err = p.headFile(); err != nil {
					return err
				}
			}
			return p.verify(cmd, known, remember)
		},
	}
	verify.Flags().StringVar(&known, "head", "", "a head known from before, SEQ:HASH (default: the remembered one)")
	verify.Flags().StringVar(&remember, "remember", "", "file to remember the head in (default: one for each address, in your configuration directory)")
	group.AddCommand(list, verify)
	return group
}

// headFile is where the head of a registry's log is remembered.
func (p *program) headFile() (string, error) {
	dir, err := configDir()
	if err != nil {
		return "", err
	}
	address, err := url.Parse(p.AdminURL)
	if err != nil {
		return "", fmt.Errorf("the address %q is none", p.AdminURL)
	}
	return filepath.Join(dir, "audit-head-"+strings.NewReplacer(":", "_", "/", "_").Replace(address.Host)), nil
}

func (p *program) verify(cmd *cobra.Command, known, file string) error {
	if known == "" {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the remembered head: %w", err)
		}
		known = strings.TrimSpace(string(text))
	}
	var from adminapi.Head
	if known != "" {
		var err error
		if from, err = adminapi.ParseHead(known); err != nil {
			return err
		}
	}
	found, err := call[adminapi.Verification](cmd.Context(), p, http.MethodGet, "/audit/verify", nil, nil)
	if err != nil {
		return err
	}
	chain, met := adminapi.Follow(from), false
	server := adminapi.Head{Seq: found.Data.Entries, Hash: found.Data.Head}
	err = all(cmd.Context(), p, "/audit", url.Values{"limit": {"1000"}}, func(page []adminapi.Entry) {
		for _, e := range page {
			chain.Add(e)
			met = met || chain.Head == server
		}
	})
	if err != nil {
		return err
	}
	problems := append(chain.End(), found.Data.Problems...)
	if !met && server.Seq > 0 {
		problems = append(problems, fmt.Sprintf("the server has checked a log that ends with entry %d, and sends another", server.Seq))
	}
	rows := []row{}
	for _, problem := range problems {
		rows = append(rows, row{problem})
	}
	if len(problems) > 0 {
		report := adminapi.Verification{Entries: chain.Head.Seq, Head: chain.Head.Hash, Problems: problems}
		if err := p.print(report, row{"PROBLEM"}, rows...); err != nil {
			return err
		}
		return fmt.Errorf("the audit log is not as it was written: %d problems", len(problems))
	}
	if err := keep(file, chain.Head.String()); err != nil {
		return err
	}
	since := "none was known before"
	if known != "" {
		since = "it goes on from entry " + strconv.FormatInt(from.Seq, 10) + ", known before"
	}
	return p.print(adminapi.Verification{Entries: chain.Head.Seq, Head: chain.Head.Hash, Problems: []string{}},
		row{fmt.Sprintf("The audit log is whole: %d entries; %s.", chain.Head.Seq, since)}, row{"Head: " + chain.Head.String()})
}

// keep writes a line into a file, whole or not at all.
func keep(file, line string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("remember the head: %w", err)
	}
	w, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".new")
	if err != nil {
		return fmt.Errorf("remember the head: %w", err)
	}
	_, err = w.WriteString(line + "\n")
	if err := errors.Join(err, w.Sync(), w.Close(), os.Rename(w.Name(), file)); err != nil {
		return fmt.Errorf("remember the head: %w", err)
	}
	return nil
}
