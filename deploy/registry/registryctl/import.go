package registryctl

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"asset-registry.example/client"
	"asset-registry/deploy/registry/bulk"
)

type importAssets struct {
	File string `arg:"" out:"" help:"XLSX or CSV file, or a file with a JSON object a line."`

	Mapping string `placeholder:"FILE" in:"" help:"YAML file: which column is which field. Templates need none."`
	Folder  string `placeholder:"DIR" help:"Folder with the files of documents."`
	Access  string `placeholder:"FILE" out:"" help:"File for tokens and progress. By default FILE.access beside the file."`
	Report  string `placeholder:"FILE" out:"" help:"Report without tokens: .xlsx, .csv, else lines of JSON."`
	Check   bool   `help:"Check all rows, and change nothing."`
	Yes     bool   `help:"Change assets without asking."`
	Order   string `name:"withdraw" placeholder:"FILE" in:"" help:"Delete assets whose rows have left, by this order."`
	Accept  int    `name:"accept-warnings" placeholder:"N" least:"0" help:"Send rows with N warnings, all of them."`

	Template bool   `help:"Write FILE, a table to fill in (.xlsx or .csv), and its mapping FILE.yaml."`
	Lang     string `env:"LC_ALL,LC_MESSAGES,LANG" default:"uk" help:"Language of messages and templates: uk or en."`

	Rows int `default:"16" least:"1" most:"256" help:"Rows that are sent at the same time, at most 256."`

	levels string // accreditation levels of the API key
}

// Help describes how an import is continued.
func (importAssets) Help() string {
	return `Each row makes one asset, which is created, published and given its documents. All rows are checked first:
a fault names its row and column, and nothing is sent then. So does a warning, which names a cell that was perhaps
misread, unless you accept all of them. The command may be interrupted or killed at any moment:
the same command goes on, and no row makes a second asset. It waits as the registry's limits say.

Import a corrected table again, with the same file of tokens: the command shows what would change, and asks.

The file of tokens has the tokens of all assets. Only you may access it; keep it. Other commands take it as
--access. The format of mappings and of lines of JSON is in docs/import.md.`
}

// AfterApply sets the file of tokens before the files of the command are compared, and the language.
func (a *importAssets) AfterApply() error {
	if a.Access == "" && a.File != "" {
		a.Access = a.File + ".access"
	}
	if a.Lang = strings.ToLower(a.Lang); !strings.HasPrefix(a.Lang, "uk") {
		a.Lang = "en"
	}
	a.Lang = a.Lang[:len("uk")]
	return nil
}

// Run checks a file, and then imports its rows.
func (a *importAssets) Run(ctx context.Context, p *program) (err error) {
	p.lang = a.Lang
	defer func() { err = p.translated(err) }()
	if a.Template {
		return a.writeTemplate(p)
	}
	told, err := newImportReport(p, a.Report)
	if err != nil {
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
	load := &bulk.Load{
		Files: files, Workers: a.Rows, Tell: told.tell,
		Waiting: func(text string) { _ = p.say("%s", text) }, // an error only means that the terminal is gone
	}
	defer func() {
		if load.Journal != nil {
			err = errors.Join(err, load.Journal.Close())
		}
	}()
	if a.Order != "" {
		if load.Order, err = bulk.OpenFolder(filepath.Dir(a.Order)); err != nil {
			return err
		}
		load.Paper = filepath.Base(a.Order)
		defer func() { err = errors.Join(err, load.Order.Close()) }()
	}
	_, missing := os.Stat(a.Access)
	if missing == nil && !(a.Check && p.Key == "") { // rows that were imported before may lack columns
		if err := a.begin(ctx, p, load); err != nil {
			return err
		}
		if !load.Journal.IsEmpty() {
			source.Known = load.Journal.Knows
		}
	}
	checked, err := a.check(p, source, files, told)
	if err != nil || a.Check && p.Key == "" {
		return err
	}
	if load.Journal == nil {
		if err := a.begin(ctx, p, load); err != nil {
			return err
		}
	}
	if err := a.compare(ctx, p, load, checked, told); err != nil {
		return err
	}
	if err := a.plan(ctx, p, load, source, checked, told); err != nil || a.Check {
		return cmp.Or(err, a.unaccepted(checked))
	}
	told.begin(checked)
	counts, err := load.Run(ctx, source, checked)
	if err != nil {
		err = fmt.Errorf("%w; the same command goes on from here", err)
	}
	return errors.Join(err, told.finish(counts, a.Access))
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
	if info, err := os.Stat(a.File); err == nil && !info.Mode().IsRegular() {
		return s, nil, fmt.Errorf("%s is not a file: rows are read twice", a.File)
	}
	file, err := os.Open(a.File)
	if err != nil {
		return s, nil, fmt.Errorf("FILE: %w", err)
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
	_, err := fmt.Fprintln(p.out, plain(f.In(p.lang)))
	return err
}

// inWords returns a message in the language of the command, line by line.
func (p *program) inWords(text string) string {
	told := strings.Split(text, "\n")
	for i := range told {
		told[i] = bulk.In(p.lang, told[i])
	}
	return strings.Join(told, "\n")
}

// translatedError is an error in another language.
type translatedError struct {
	error
	text string
}

// Error implements error.
func (e translatedError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e translatedError) Unwrap() error { return e.error }

// translated returns an error in the language of the command.
func (p *program) translated(err error) error {
	if err == nil {
		return nil
	}
	return translatedError{err, p.inWords(err.Error())}
}

// cut returns the beginning of a text that is too long to be printed.
func cut(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "..."
}

// check prints the faults of the file, and returns an error if there are any.
func (a *importAssets) check(
	p *program, source bulk.Source, files *bulk.Folder, told *importReport,
) (bulk.Checked, error) {
	found := 0
	var printing error
	checked, ok, err := bulk.Check(source, files, func(f bulk.Finding) {
		if f.Level == bulk.Refusal {
			found++
		}
		told.found(f)
		printing = errors.Join(printing, p.finding(f))
	})
	unaccepted := a.unaccepted(checked)
	if a.Check && p.Key != "" {
		unaccepted = nil // the registry is asked before
	}
	if err == nil && (!ok || unaccepted != nil) {
		printing = errors.Join(printing, told.write(checked.Header))
	}
	switch {
	case err != nil || printing != nil:
		return checked, errors.Join(err, printing)
	case !ok:
		return checked, verdict{fmt.Errorf("%s has %d faults%s; nothing was sent", a.File, found, withWarnings(checked))}
	case unaccepted != nil:
		return checked, unaccepted
	}
	const says = "%d rows with %d documents have no faults%s. %d rows are skipped."
	return checked, p.say(says, checked.Rows, checked.Documents, withWarnings(checked), checked.Skipped)
}

// unaccepted returns an error if the file has other warnings than the user has accepted.
func (a *importAssets) unaccepted(c bulk.Checked) error {
	if c.Warnings == a.Accept {
		return nil
	}
	return verdict{fmt.Errorf("%s has no faults, and %d warnings; nothing was sent: "+
		"mend the cells, or accept them with --accept-warnings %[2]d", a.File, c.Warnings)}
}

// withWarnings returns the part of a message that counts the warnings, or "".
func withWarnings(c bulk.Checked) string {
	if c.Warnings == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d warnings", c.Warnings)
}

// begin opens the file of tokens, and a client of the registry. A check makes no file.
func (a *importAssets) begin(ctx context.Context, p *program, load *bulk.Load) error {
	asking, err := p.public(true)
	if err != nil {
		return err
	}
	me, err := asking.Me(ctx)
	if err != nil {
		return err
	}
	a.levels = me.Accreditations
	if me.Role != "broker" {
		return fmt.Errorf("the API key is of role %q: only a broker's key creates assets", me.Role)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = a.Rows, a.Rows
	if load.Registry, err = p.client(client.Retry{Tries: 1}, transport); err != nil {
		return err
	}
	if _, missing := os.Stat(a.Access); a.Check && missing != nil {
		load.Journal = bulk.NewJournal()
		return nil
	}
	load.Journal, err = bulk.OpenJournal(a.Access, strings.TrimSuffix(p.URL, "/"), me.Broker)
	return err
}

// compare tells the rows that the registry does not admit, by its settings or by the levels of the API key.
func (a *importAssets) compare(
	ctx context.Context, p *program, load *bulk.Load, checked bulk.Checked, told *importReport,
) error {
	text, err := load.Registry.Dictionaries(ctx)
	if client.StatusOf(err) != 0 {
		text = []byte("{}") // without a search service there are no dictionaries; the registry checks the types itself
	} else if err != nil {
		return fmt.Errorf("read the types of assets: %w", err)
	}
	barred := checked.Barred(text, a.levels, load.Journal.Knows)
	for _, f := range barred {
		told.found(bulk.Finding{Fault: f})
		told.note(p.fault(f))
	}
	if len(barred) > 0 {
		err = verdict{fmt.Errorf("%s has %d faults; nothing was sent", a.File, len(barred))}
		return errors.Join(told.err, told.write(checked.Header), err)
	}
	return nil
}

// plan shows what the import will do with the assets of former imports, and asks whether it may.
func (a *importAssets) plan(
	ctx context.Context, p *program, load *bulk.Load, source bulk.Source, checked bulk.Checked, told *importReport,
) error {
	if load.Journal.IsEmpty() && !a.Check {
		return nil
	}
	if a.Check {
		load.Taken = map[string]string{}
		for page, err := range load.Registry.OwnPages(ctx, client.Own{Limit: 1000, Fields: []string{"reference"}}) {
			if err != nil {
				return err
			}
			for _, own := range page.Assets {
				load.Taken[own.Reference] = own.Asset.ID
			}
		}
	}
	left := load.Journal.Left(checked)
	counts, err := load.Plan(ctx, source, checked)
	if err := errors.Join(err, told.err); err != nil {
		return err
	}
	for _, reference := range left {
		if a.Order == "" {
			says := fmt.Sprintf("%q is not in the table any more: its asset stays as it is", bulk.ReadReference(reference))
			if err := p.finding(bulk.Finding{Fault: bulk.Fault{Text: says}, Level: bulk.Note}); err != nil {
				return err
			}
		}
	}
	refused := counts.Refused + counts.NoToken
	const says = "%d rows make new assets, %d change theirs, %d stay as they are, %d would be refused. " +
		"%d assets are deleted."
	err = p.say(says, counts.New, counts.Changed, counts.Done-counts.Changed, refused, counts.Withdrawn)
	switch {
	case err != nil:
		return err
	case a.Check && refused > 0:
		return errors.Join(fmt.Errorf("%d rows would be refused", refused), told.write(checked.Header))
	case a.Check:
		return told.write(checked.Header)
	case a.Yes || counts.Changed+counts.Withdrawn == 0:
		return nil
	}
	if err := p.say("Send these changes? yes or no:"); err != nil {
		return err
	}
	answer, _ := bufio.NewReader(p.in).ReadString('\n') // the end of the input is no answer
	if !slices.Contains([]string{"y", "yes", "т", "так"}, strings.ToLower(strings.TrimSpace(answer))) {
		return errors.New("nothing was sent: answer yes, or run the command with --yes")
	}
	return nil
}
