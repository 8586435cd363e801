package registryctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
)

const auditPage = "1000" // entries in a page, the maximum that the admin API allows

type auditCommands struct {
	List   listAudit   `cmd:"" help:"List changes, the oldest first."`
	Verify verifyAudit `cmd:"" help:"Check that no entry was changed, removed or cut off."`
}

type listAudit struct {
	After int64 `least:"0" help:"List only entries with a higher number."`
	Last  int   `least:"0" help:"List only this many of the newest entries. 0 lists all."`
}

// Run lists the entries of the audit log.
func (l listAudit) Run(ctx context.Context, p *program) error {
	query := url.Values{"limit": {auditPage}, "after": {strconv.FormatInt(l.After, 10)}}
	entries, err := gathered(all[adminapi.Entry](ctx, p, "/audit", query))
	if err != nil {
		return err
	}
	if l.Last > 0 && len(entries) > l.Last {
		entries = entries[len(entries)-l.Last:]
	}
	answer := adminapi.Response[[]adminapi.Entry]{Data: entries}
	return table(p, answer, row{"SEQ", "TIME", "WHO", "FROM", "ACTION", "SUBJECT"}, entries, func(e adminapi.Entry) row {
		return row{strconv.FormatInt(e.Seq, 10), stamp(&e.Time), e.Who, e.From, e.Action, e.Subject}
	})
}

type verifyAudit struct {
	Head     string `placeholder:"SEQ:HASH" help:"Head that the log must contain. By default the remembered one."`
	Remember string `placeholder:"FILE" out:"later" help:"File that remembers the head. By default one for each address."`
}

// Help returns the long help of the command.
func (verifyAudit) Help() string {
	return `The command fetches the whole log and computes its chain of hashes again. The server
checks the seals, and compares keys and brokers with the log.

An attacker who can write to the store and knows the registry's secret can still shorten or replace the log.
So the command remembers the last head, and the next check must find that head in the log.
By default it does so in your configuration directory.`
}

// Run checks the audit log, and remembers its head for the next check.
func (v verifyAudit) Run(ctx context.Context, p *program) error {
	file := v.Remember
	if file == "" {
		var err error
		if file, err = p.headFile(); err != nil {
			return err
		}
	}
	known, err := knownHead(v.Head, file)
	if err != nil {
		return err
	}
	head, problems, lost, err := checkAudit(ctx, p, known)
	if err != nil {
		return err
	}
	report := adminapi.Verification{Entries: head.Seq, Head: head.Hash, Problems: problems, Lost: lost}
	for _, loss := range lost {
		if err := p.note("Lost: %s.", loss); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		var rows []row
		for _, problem := range problems {
			rows = append(rows, row{problem})
		}
		if err := p.print(report, row{"PROBLEM"}, rows...); err != nil {
			return err
		}
		return fmt.Errorf("the audit log has been tampered with or damaged: %d problems", len(problems))
	}
	if err := rememberHead(file, head); err != nil {
		return err
	}
	since := "no earlier head is known"
	if known.Seq > 0 {
		since = fmt.Sprintf("it continues from entry %d, known before", known.Seq)
	}
	summary := fmt.Sprintf("The audit log is whole: %d entries; %s.", head.Seq, since)
	return p.print(report, row{summary}, row{"Head: " + head.String()})
}

// checkAudit reads the whole log and returns its head, its problems, and where entries were lost. If the head `known`
// is not the zero value, the log must contain it. If the log has no problems, the result `problems` is empty but not
// nil.
func checkAudit(ctx context.Context, p *program, known adminapi.Head) (
	head adminapi.Head, problems, lost []string, err error,
) {
	found, err := call[adminapi.Verification](ctx, p, http.MethodGet, "/audit/verify", nil, nil)
	if err != nil {
		return head, nil, nil, err
	}
	chain, met := adminapi.Follow(known), false
	server := adminapi.Head{Seq: found.Data.Entries, Hash: found.Data.Head}
	for e, err := range all[adminapi.Entry](ctx, p, "/audit", url.Values{"limit": {auditPage}}) {
		if err != nil {
			return head, nil, nil, err
		}
		chain.Add(e)
		met = met || chain.Head == server
	}
	problems = append(append([]string{}, chain.End()...), found.Data.Problems...)
	if !met && server.Seq > 0 {
		problem := fmt.Sprintf("the server checked a log that ends with entry %d and sent another one", server.Seq)
		problems = append(problems, problem)
	}
	return chain.Head, problems, chain.Lost, nil
}

// headFile returns the path of the default file for the remembered head of the registry's audit log.
func (p *program) headFile() (string, error) {
	dir, err := configDir()
	if err != nil {
		return "", err
	}
	address, err := url.Parse(p.AdminURL)
	if err != nil {
		return "", err
	}
	host := strings.NewReplacer(":", "_", "/", "_").Replace(address.Host)
	return filepath.Join(dir, "audit-head-"+host), nil
}

// knownHead returns the head in the argument `text`. If `text` is empty, it returns the head in the file, or the
// zero value if the file does not exist.
func knownHead(text, file string) (adminapi.Head, error) {
	if text == "" {
		remembered, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return adminapi.Head{}, fmt.Errorf("read the remembered head: %w", err)
		}
		text = strings.TrimSpace(string(remembered))
	}
	if text == "" {
		return adminapi.Head{}, nil
	}
	head, err := adminapi.ParseHead(text)
	return head, errs.In(err, "--head, or the file of --remember")
}

// rememberHead replaces the file's content with the head, completely or not at all.
func rememberHead(file string, head adminapi.Head) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("remember the head: %w", err)
	}
	return errs.In(durable.WriteFile(file, []byte(head.String()+"\n")), "remember the head")
}
