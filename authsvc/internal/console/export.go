package console

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/cells"
	"asset-registry/shared/fault"
)

// ExportPath is the prefix of the paths under which the audit log is exported. An export may take longer than other
// requests.
const ExportPath = "/console/audit/export/"

func exportPath(format string, q url.Values) string {
	return list{path: ExportPath + format, query: q}.with("", "")
}

// maxExports is the maximum number of exports that run at the same time.
const maxExports = 2

// rows writes entries in one of the formats.
type rows interface {
	write(e adminapi.Entry) error
	flush() error
}

// formats has the formats of exports; the keys are the ends of the paths.
var formats = map[string]struct {
	media string
	rows  func(w io.Writer) rows
}{
	"csv":    {"text/csv; charset=utf-8", newCSV},
	"ndjson": {"application/x-ndjson", newLines},
}

// exportAudit sends the entries that a search finds, in the order of the log. It holds one block of entries in
// memory. If an export fails, exportAudit aborts the connection, so that nobody believes that the export is complete.
func (c *Console) exportAudit(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	format, ok := formats[r.PathValue("format")]
	if !ok {
		return errNoPage
	}
	l, err := listOf(r, auditParameters...)
	if err != nil {
		return err
	}
	query, err := c.auditQuery(l.query)
	if err != nil {
		return err
	}
	select {
	case c.exports <- struct{}{}:
		defer func() { <-c.exports }()
	default:
		busy := fault.New(fault.TooMany, fault.URL, "export", "Other exports are running. Try again in a moment.")
		busy.RetryAfter = 5 * time.Second
		return busy
	}
	of := struct {
		Format string `json:"format"`
		Query  string `json:"query"`
	}{r.PathValue("format"), l.query.Encode()}
	if err := c.Admin.Witness(r.Context(), by, audit.ExportLog, audit.LogSubject, of); err != nil {
		return err
	}
	var out rows
	begin := func() {
		w.Header().Set("Content-Type", format.media)
		name := "audit-" + c.Now().UTC().Format(time.DateOnly) + "." + r.PathValue("format")
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
		out = format.rows(w)
	}
	err = audit.Export(r.Context(), c.Admin, query, func(e adminapi.Entry) error {
		if out == nil {
			begin()
		}
		return out.write(e)
	})
	switch {
	case err == nil && out == nil: // no entry was found
		begin()
	case err != nil && out == nil:
		return err
	}
	if err == nil {
		err = out.flush()
	}
	if err != nil {
		c.Log.Warn("an export of the audit log broke off", "who", by.Name, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// lines writes each entry as a line of JSON, with everything that a check of the chain needs.
type lines struct{ to *json.Encoder }

func newLines(w io.Writer) rows { return lines{json.NewEncoder(w)} }

func (l lines) write(e adminapi.Entry) error { return l.to.Encode(e) }

func (l lines) flush() error { return nil }

// table writes entries for spreadsheets.
type table struct{ to *csv.Writer }

// csvHeadings is the first row of a table.
var csvHeadings = []string{
	"number", "time", "action", "name", "subject", "broker", "by", "by key", "from", "changes", "request", "hash",
}

// newCSV begins the table with a byte order mark. Without it, some spreadsheets misread letters beyond ASCII.
func newCSV(w io.Writer) rows {
	io.WriteString(w, "\uFEFF") // an error of w is returned by flush
	t := table{csv.NewWriter(w)}
	t.to.Write(csvHeadings)
	return t
}

func (t table) write(e adminapi.Entry) error {
	shown, err := viewEntry(e)
	if err != nil {
		return err
	}
	var changes []string
	for _, d := range shown.Changes {
		text := d.Field + ": " + d.After
		if shown.IsChange() {
			text = d.Field + ": " + d.Before + " → " + d.After
		}
		changes = append(changes, text)
	}
	row := []string{
		strconv.FormatInt(e.Seq, 10), e.Time.UTC().Format(time.RFC3339Nano), e.Action, shown.Name, e.Subject, shown.Broker,
		shown.By, shown.ByID, e.From, strings.Join(changes, "\n"), e.RequestID, e.Hash,
	}
	for i := range row {
		row[i] = cells.Harmless(row[i])
	}
	return t.to.Write(row)
}

func (t table) flush() error {
	t.to.Flush()
	return t.to.Error()
}
