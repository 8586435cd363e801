package registryctl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/deploy/registry/bulk"
	"asset-registry/deploy/registry/bulk/sheet"
	"asset-registry/shared/cells"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
)

// importReport prints what is said about rows, and writes it to a file: a table for people, or lines of JSON.
type importReport struct {
	p       *program
	name    string
	isTable bool
	*line

	rows, skipped, files int // of the file
	done, doneFiles      int
	isRunning            bool // the plan is carried out
	table                [][]string
	lines                strings.Builder
	err                  error // the first error
}

// reportSheet is the name of the sheet of a report, and the heading of its first column.
const reportSheet = "registryctl"

func newImportReport(p *program, name string) (*importReport, error) {
	r := &importReport{p: p, name: name, line: newLine(p.errOut)}
	kind := strings.ToLower(filepath.Ext(name))
	r.isTable = kind == ".xlsx" || kind == ".csv"
	return r, mayReplace(name)
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
			if isReport(file, info.Size()) {
				return nil
			}
		}
	}
	return errors.Join(fmt.Errorf("%s is there already, and is no report: name another file", name), err)
}

// isReport reports whether a file is a former report.
func isReport(file *os.File, size int64) bool {
	if book, err := sheet.Open(file, size); err == nil {
		return len(book.Sheets) == 1 && book.Sheets[0].Name == reportSheet
	}
	begin, _ := io.ReadAll(io.NewSectionReader(file, 0, 64)) // an error is no report
	if strings.HasPrefix(string(begin), "\ufeff"+reportSheet+";") {
		return true
	}
	var former bulk.Result
	return json.NewDecoder(file).Decode(&former) == nil && former.State != ""
}

// found takes a finding of the check for the table.
func (r *importReport) found(f bulk.Finding) {
	if r.isTable && (f.Level == bulk.Refusal || f.Level == bulk.Warning) && len(r.table) < 1<<20 {
		r.fault(f, f.Cells)
	}
}

func (r *importReport) fault(f bulk.Finding, cells []string) {
	number, column := numbered(f.Row), f.Column
	f.Row, f.Column = 0, ""
	r.table = append(r.table, append([]string{number, r.p.inWords(column), f.In(r.p.lang)}, cells...))
}

// numbered prints the number of a row; 0 stands for no row.
func numbered(row int) string {
	if row == 0 {
		return ""
	}
	return strconv.Itoa(row)
}

// begin begins the report of the import.
func (r *importReport) begin(of bulk.Checked) {
	r.rows, r.files, r.skipped, r.isRunning, r.table = of.Rows, of.Documents, of.Skipped, true, nil
	r.line = newLine(r.p.errOut)
}

// page returns the address of the page of an asset.
func (r *importReport) page(of bulk.Result) string {
	if !of.IsPublic {
		return ""
	}
	return r.p.page(of.ID)
}

// page returns the address of the page of an asset.
func (p *program) page(id string) string {
	return strings.TrimSuffix(p.URL, "/") + "/" + cmp.Or(p.lang, "uk") + "/assets/" + id
}

// tell processes the result of a row, or of its plan.
func (r *importReport) tell(result bulk.Result) {
	result.Page = r.page(result)
	faults := result.Faults
	if !r.isRunning {
		for _, f := range result.Changes {
			f.Text += ofAsset(result)
			told := bulk.Finding{Fault: f, Level: bulk.Changes}
			r.note(r.p.finding(told))
			if r.isTable {
				r.fault(told, nil)
			}
		}
	} else {
		r.done, r.doneFiles = r.done+1, r.doneFiles+result.Files
		if r.terminal {
			r.show(func(in time.Duration) string {
				left := time.Duration(float64(in) * float64(r.rows-r.done) / float64(max(r.done, 1))).Round(time.Second)
				const width = 20
				bar := strings.Repeat("#", width*min(r.done, r.rows)/max(r.rows, 1))
				return r.p.inWords(fmt.Sprintf("[%-20s] %d of %d rows, %d of %d files, %.0f s left",
					bar, r.done, r.rows, r.doneFiles, r.files, left.Seconds()))
			})
		}
		if r.isTable {
			var says []string
			for _, f := range append(slices.Clone(result.Changes), faults...) {
				f.Row = 0
				says = append(says, bulk.Finding{Fault: f}.In(r.p.lang))
			}
			r.table = append(r.table, []string{numbered(result.Row), result.Reference, result.Number, result.Page,
				strings.TrimPrefix(r.p.inWords("state "+string(result.State)), "state "), strings.Join(says, "\n")})
		} else if r.name != "" {
			r.note(json.NewEncoder(&r.lines).Encode(result))
		}
	}
	if result.State == bulk.Failed || r.isRunning && result.Told {
		return // the error that the command returns has the reason, or the plan was shown
	}
	for _, f := range faults {
		f.Text += ofAsset(result)
		r.end()
		r.note(r.p.finding(bulk.Finding{Fault: f}))
		if r.isTable && !r.isRunning {
			r.fault(bulk.Finding{Fault: f}, nil)
		}
	}
}

// ofAsset returns the part of a message that names the asset, or "" without an id.
func ofAsset(of bulk.Result) string {
	switch {
	case of.ID == "":
		return ""
	case of.Page == "":
		return " (asset " + strings.TrimSpace(of.Number+" "+of.ID) + ")"
	}
	return " (asset " + of.Number + ", " + of.Page + ")"
}

// note remembers the first error.
func (r *importReport) note(err error) {
	r.err = cmp.Or(r.err, err)
}

// write writes the report of a check, or of the import. The argument `header` has the names of the table's columns.
func (r *importReport) write(header []string) error {
	if r.name == "" || !r.isTable && !r.isRunning {
		return nil
	}
	text := r.lines.String()
	if r.isTable {
		asXLSX := strings.HasSuffix(strings.ToLower(r.name), ".xlsx")
		names := []string{"column", "fault"}
		if r.isRunning {
			names = []string{"reference", "number", "address", "state", "remarks"}
		}
		head := []string{reportSheet}
		for _, name := range names {
			head = append(head, strings.TrimPrefix(r.p.inWords("heading "+name), "heading "))
		}
		for _, row := range append(r.table, header) {
			for i := range row {
				if !asXLSX {
					row[i] = cells.Harmless(row[i])
				}
			}
		}
		var table strings.Builder
		rows := append([][]string{append(head, header...)}, r.table...)
		if err := bulk.WriteTable(&table, reportSheet, rows, asXLSX); err != nil {
			return err
		}
		text = table.String()
	}
	return errs.In(durable.WriteFile(r.name, []byte(text)), "write the report")
}

// finish completes the report, and prints how many rows are in each state. It returns an error if a row is not done.
func (r *importReport) finish(c bulk.Counts, access string) error {
	r.end()
	if err := errors.Join(r.err, r.write(nil)); err != nil {
		return err
	}
	took := time.Since(r.begun).Round(time.Millisecond)
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
