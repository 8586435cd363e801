package registryctl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"asset-registry.example/client"
	"asset-registry/deploy/registry/bulk"
	"asset-registry/shared/durable"
)

type importAssets struct {
	File string `arg:"" out:"" help:"XLSX or CSV file, or a file with a JSON object a line."`

	Mapping string `placeholder:"FILE" in:"" help:"YAML file: which column is which field. Templates need none."`
	Folder  string `placeholder:"DIR" help:"Folder with the files of documents."`
	Access  string `placeholder:"FILE" out:"" help:"File for tokens and progress. By default FILE.access beside the file."`
	Report  string `placeholder:"FILE" out:"" help:"Report: a line of JSON for each row, without tokens."`
	Check   bool   `help:"Check all rows, and send nothing."`
	Accept  int    `name:"accept-warnings" placeholder:"N" least:"0" help:"Send rows with N warnings, all of them."`

	Template bool   `help:"Write FILE, a table to fill in (.xlsx or .csv), and its mapping FILE.yaml."`
	Lang     string `enum:"uk,en" default:"uk" help:"Language of the template: uk or en."`

	Rows int `default:"16" least:"1" most:"256" help:"Rows that are sent at the same time, at most 256."`
}

// Help describes how an import is continued.
func (importAssets) Help() string {
	return `Each row makes one asset, which is created, published and given its documents. All rows are checked first:
a fault names its row and column, and nothing is sent then. So does a warning, which names a cell that was perhaps
misread, unless you accept all of them. The command may be interrupted or killed at any moment:
the same command goes on, and no row makes a second asset. It waits as the registry's limits say.

The file of tokens has the tokens of all assets. Only you may access it; keep it. Other commands take it as
--access. The format of mappings and of lines of JSON is in docs/import.md.`
}

// AfterApply sets the file of tokens before the files of the command are compared.
func (a *importAssets) AfterApply() error {
	if a.Access == "" && a.File != "" {
		a.Access = a.File + ".access"
	}
	return nil
}

// Run checks a file, and then imports its rows.
func (a *importAssets) Run(ctx context.Context, p *program) (err error) {
	if a.Template {
		return a.writeTemplate(p)
	}
	if err := mayReplace(a.Report); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	source, closeFile, err := a.open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	var files *bulk.Folder
	if a.Folder != "" {
		if files, err = bulk.OpenFolder(a.Folder); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, files.Close()) }()
	}
	checked, err := a.check(p, source, files)
	if err != nil || a.Check {
		return err
	}
	return a.load(ctx, p, source, files, checked)
}

// writeTemplate writes a template and its mapping as new files.
func (a *importAssets) writeTemplate(p *program) error {
	var table bytes.Buffer
	if err := bulk.WriteTemplate(&table, a.Lang, strings.HasSuffix(strings.ToLower(a.File), ".xlsx")); err != nil {
		return err
	}
	mapping := a.File + ".yaml"
	for name, text := range map[string]string{a.File: table.String(), mapping: bulk.TemplateMapping(a.Lang)} {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("write the template: %w", err)
		}
		_, err = file.WriteString(text)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("write the template: %w", err)
		}
	}
	return p.say("%s is the table; it needs no mapping. %s is its mapping, to change.", a.File, mapping)
}

// open opens the file to import, and reads the mapping.
func (a *importAssets) open(p *program) (s bulk.Source, closeFile func() error, err error) {
	if a.Mapping != "" {
		text, err := os.Open(a.Mapping)
		if err != nil {
			return s, nil, fmt.Errorf("read the mapping: %w", err)
		}
		m, faults := bulk.ReadMapping(text)
		if err := text.Close(); err != nil {
			return s, nil, fmt.Errorf("read the mapping: %w", err)
		}
		for _, f := range faults {
			if err := p.fault(f); err != nil {
				return s, nil, err
			}
		}
		if len(faults) > 0 {
			return s, nil, fmt.Errorf("%s has %d faults", a.Mapping, len(faults))
		}
		s.Mapping = &m
	}
	file, err := os.Open(a.File)
	if err != nil {
		return s, nil, fmt.Errorf("FILE: %w", err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return s, nil, errors.Join(fmt.Errorf("%s is not a file: rows are read twice", a.File), err, file.Close())
	}
	s.File = file
	if s.Mapping == nil {
		if s.Mapping, err = bulk.OfTemplate(s); err != nil {
			return s, nil, errors.Join(err, file.Close())
		}
	}
	return s, file.Close, nil
}

// The bounds of the faults that a command prints. A file may have a million faulty rows.
const (
	mostFaults = 1000
	mostText   = 500 // bytes of a column's name and of a text
)

// isEnough counts a fault, and reports whether the command has printed mostFaults before. It says so once.
func (p *program) isEnough() (bool, error) {
	p.faults++
	if p.faults == mostFaults+1 {
		return true, p.say("There are more faults; the first %d are printed.", mostFaults)
	}
	return p.faults > mostFaults, nil
}

// fault prints one fault in a line, unless so many were printed that it is enough.
func (p *program) fault(f bulk.Fault) error { return p.finding(bulk.Finding{Fault: f}) }

// finding prints one finding in a line, unless so many were printed that it is enough.
func (p *program) finding(f bulk.Finding) error {
	if enough, err := p.isEnough(); enough {
		return err
	}
	f.Column, f.Text = cut(f.Column), cut(f.Text)
	if p.output == asJSON {
		return p.printJSON(f, "")
	}
	_, err := fmt.Fprintln(p.out, plain(f.String()))
	return err
}

// cut returns the beginning of a text that is too long to be printed.
func cut(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "..."
}

// check prints the faults of the file, and returns an error if there are any.
func (a *importAssets) check(p *program, source bulk.Source, files *bulk.Folder) (bulk.Checked, error) {
	found := 0
	var printing error
	checked, ok, err := bulk.Check(source, files, func(f bulk.Finding) {
		if f.Level == bulk.Refusal {
			found++
		}
		printing = errors.Join(printing, p.finding(f))
	})
	switch {
	case err != nil || printing != nil:
		return checked, errors.Join(err, printing)
	case !ok:
		return checked, verdict{fmt.Errorf("%s has %d faults%s; nothing was sent", a.File, found, withWarnings(checked))}
	case checked.Warnings != a.Accept:
		return checked, verdict{fmt.Errorf("%s has no faults, and %d warnings; nothing was sent: "+
			"mend the cells, or accept them with --accept-warnings %[2]d", a.File, checked.Warnings)}
	}
	const says = "%d rows with %d documents have no faults%s. %d rows are skipped."
	return checked, p.say(says, checked.Rows, checked.Documents, withWarnings(checked), checked.Skipped)
}

// withWarnings returns the part of a message that counts the warnings, or "".
func withWarnings(c bulk.Checked) string {
	if c.Warnings == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d warnings", c.Warnings)
}

// load loads the checked rows into the registry.
func (a *importAssets) load(
	ctx context.Context, p *program, source bulk.Source, files *bulk.Folder, checked bulk.Checked,
) (err error) {
	asking, err := p.public(true)
	if err != nil {
		return err
	}
	me, err := asking.Me(ctx)
	if err != nil {
		return err
	}
	if me.Role != "broker" {
		return fmt.Errorf("the API key is of role %q: only a broker's key creates assets", me.Role)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = a.Rows, a.Rows
	registry, err := client.New(client.Config{
		URL: p.URL, Key: client.Secret(p.Key), UserAgent: "registryctl", Timeout: callTimeout, Transport: transport,
		Retry: client.Retry{Tries: 1},
	})
	if err != nil {
		return err
	}
	journal, err := bulk.OpenJournal(a.Access, strings.TrimSuffix(p.URL, "/"), me.Broker)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	told, err := newImportReport(p, a.Report, checked)
	if err != nil {
		return err
	}
	load := bulk.Load{
		Registry: registry, Files: files, Journal: journal, Workers: a.Rows, Tell: told.tell,
		Waiting: func(text string) { _ = p.say("%s", text) }, // an error only means that the terminal is gone
	}
	counts, err := load.Run(ctx, source, checked)
	if err != nil {
		err = fmt.Errorf("%w; the same command goes on from here", err)
	}
	return errors.Join(err, told.end(counts, a.Access))
}

// importReport prints the rows that are not done, and writes the results of all rows to a file.
type importReport struct {
	p       *program
	name    string
	rows    int
	skipped int
	started time.Time

	mu    sync.Mutex
	done  int
	shown time.Time
	file  *os.File // nil: no file was asked for
	out   *bufio.Writer
	err   error // the first error
}

// mayReplace returns an error unless a report may have the name: no file has it, or only an empty one or a former
// report. So a mistake in the command replaces no other file.
func mayReplace(name string) error {
	info, err := os.Stat(name)
	if name == "" || errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return nil
	}
	if err == nil && info.Mode().IsRegular() {
		var file *os.File
		if file, err = os.Open(name); err == nil {
			defer file.Close()
			var former bulk.Result
			if json.NewDecoder(file).Decode(&former) == nil && former.Row > 0 && former.State != "" {
				return nil
			}
		}
	}
	return errors.Join(fmt.Errorf("%s is there already, and is no report: name another file", name), err)
}

func newImportReport(p *program, name string, of bulk.Checked) (*importReport, error) {
	r := &importReport{p: p, name: name, rows: of.Rows, skipped: of.Skipped, started: time.Now(), shown: time.Now()}
	if name == "" {
		return r, nil
	}
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+durable.Unfinished) // with mode 0600
	if err != nil {
		return nil, fmt.Errorf("write the report: %w", err)
	}
	r.file, r.out = file, bufio.NewWriter(file)
	return r, nil
}

// progressEvery is the time between two lines that show the progress.
const progressEvery = 10 * time.Second

// tell processes the result of a row.
func (r *importReport) tell(result bulk.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if time.Since(r.shown) >= progressEvery {
		r.shown = time.Now()
		r.note(r.p.say("%d of %d rows after %v", r.done, r.rows, time.Since(r.started).Round(time.Second)))
	}
	if r.file != nil {
		r.note(json.NewEncoder(r.out).Encode(result))
	}
	if result.State == bulk.Failed { // not printed here: the error that the command returns has the reason
		return
	}
	for _, f := range result.Faults {
		f.Text += ofAsset(result.ID)
		r.note(r.p.fault(f))
	}
}

// ofAsset returns the part of a message that names the asset, or "" without an id.
func ofAsset(id string) string {
	if id == "" {
		return ""
	}
	return " (asset " + id + ")"
}

// note remembers the first error.
func (r *importReport) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// end completes the report, and prints how many rows are in each state. It returns an error if a row is not
// done.
func (r *importReport) end(c bulk.Counts, access string) error {
	if r.file != nil {
		r.note(errors.Join(r.out.Flush(), r.file.Sync(), r.file.Close()))
		r.note(durable.Rename(r.file.Name(), r.name))
	}
	if r.err != nil {
		return fmt.Errorf("write the report: %w", r.err)
	}
	took := time.Since(r.started).Round(time.Millisecond)
	const says = "%d of %d rows are done, after %v. %d have no tokens, %d were refused, %d were skipped.\n" +
		"The tokens are in %s."
	if err := r.p.note(says, c.Done, r.rows, took, c.NoToken, c.Refused, r.skipped, plain(access)); err != nil {
		return err
	}
	if r.p.output == asJSON {
		if err := r.p.printJSON(c, ""); err != nil {
			return err
		}
	}
	if c.NoToken+c.Refused > 0 {
		return fmt.Errorf("%d rows are not done", c.NoToken+c.Refused)
	}
	return nil
}
