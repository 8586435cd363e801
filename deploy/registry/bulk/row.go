package bulk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"asset-registry.example/client"
)

// errNoToken is the error for a row whose asset exists but whose tokens were not kept.
var errNoToken = errors.New("the asset was created before, and its tokens were not kept here. " +
	"An administrator gives new ones: registryctl assets recover. Append that file to the file of tokens, " +
	"and run the command again")

// errDead is the error for a row whose asset has other tokens now than those that the import has.
var errDead = errors.New("its tokens are no longer good, after a recovery or a change of the owner. " +
	"An administrator gives the owner new ones: registryctl assets recover. Append that file to the file of tokens, " +
	"and run the command again")

// errDeleted is the error for a row whose asset was withdrawn.
var errDeleted = errors.New("the asset was deleted, so its tokens change nothing any more")

// work is the state of a worker while it loads one row.
type work struct {
	*Load
	row     Row
	files   *Folder
	at      progress
	held    client.Asset // the asset when it was last read
	tag     client.Tag   // tag of the asset; "": unknown
	fresh   bool         // the asset was just created
	plan    plan
	refused refusals
}

// row does for a row what there is to do, or plans it. If it returns an error, the load ends.
func (l *Load) row(ctx context.Context, row Row) (Result, error) {
	w := &work{Load: l, row: row, files: l.Files}
	if row.left {
		w.files = l.Order
	}
	result := Result{Row: row.Number, Reference: ReadReference(row.Reference), State: Done}
	if row.left {
		result.State = Withdrawn
	}
	l.mu.Lock()
	planned, isPlanned := l.plans[row.Reference]
	l.mu.Unlock()
	var err error
	if l.planning {
		err = w.foresee(ctx, &result)
		w.plan.err = err
		l.mu.Lock()
		if w.at.id != "" && result.State != New {
			l.plans[row.Reference] = w.plan
		}
		l.mu.Unlock()
	} else {
		w.plan = planned
		result.Changes = w.plan.changes
		err = w.do(ctx, isPlanned)
	}
	result.ID, result.Number = w.at.id, cmp.Or(w.held.AssetID, planned.number)
	result.IsPublic = planned.isPublic || w.held.Status != client.Draft && w.held.Status != ""
	status := client.StatusOf(err)
	_, isLocal := errors.AsType[*fs.PathError](err)
	refused, isRefused := errors.AsType[refusals](err)
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, errNoToken), errors.Is(err, errDead), errors.Is(err, errDeleted):
		result.State = NoToken
	case errors.Is(err, errNotKept):
		return failed(result, err)
	case isRefused, errors.Is(err, errOvertaken), isLocal,
		status >= 400 && status != http.StatusUnauthorized && !isAway(err):
		result.State = Refused
	default:
		return failed(result, err)
	}
	result.Changes, result.Faults, result.Told = nil, refused, planned.err != nil
	if !isRefused {
		result.Faults = row.refusal(err)
	}
	return result, nil
}

// failed returns the result for a row, and the error that ends the load.
func failed(result Result, err error) (Result, error) {
	result.State = Failed
	result.Faults = []Fault{{Row: result.Row, Text: err.Error()}}
	return result, err
}

// foresee plans what is to be done for the row.
func (w *work) foresee(ctx context.Context, result *Result) error {
	known := w.Journal.known(w.row.Reference)
	if known == nil {
		result.State = New
		if id := w.Taken[w.row.Reference]; id != "" {
			w.at.id = id
			return errNoToken
		}
		return nil
	}
	w.at = *known
	if known.access.Token == "" {
		return errNoToken
	}
	err := w.look(ctx)
	result.Changes = w.plan.changes
	if w.row.left && errors.Is(err, errDeleted) {
		return w.Journal.add(entry{Reference: w.row.Reference, Gone: true})
	}
	return err
}

// documentError is an error about one document of a row.
type documentError struct {
	index int
	error
}

// Unwrap returns the error without the index of the document.
func (e *documentError) Unwrap() error { return e.error }

// refusal returns the faults that the registry has reported for the row.
func (r Row) refusal(err error) (faults []Fault) {
	parent := ""
	if of, ok := errors.AsType[*documentError](err); ok {
		parent = fmt.Sprintf("%s.%d", documents, of.index)
	}
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || len(refused.Details) == 0 {
		return []Fault{{Row: r.Number, Text: err.Error()}}
	}
	for _, d := range refused.Details {
		f := Fault{Row: r.Number, Text: d.Description}
		if d.Location == "body" && d.Name != "data" {
			f.Column = r.column(join(parent, d.Name))
		}
		faults = append(faults, f)
	}
	return faults
}

// do does what is planned for the row, and creates its asset first if no run has done so.
func (w *work) do(ctx context.Context, isPlanned bool) error {
	sums, err := w.row.sums()
	if err != nil {
		return err
	}
	known := w.Journal.known(w.row.Reference)
	if known != nil {
		w.at = *known
	} else if err := w.create(ctx, sums); err != nil {
		return err
	}
	switch {
	case w.plan.err != nil:
		return w.plan.err
	case w.at.access.Token == "":
		return errNoToken
	case known == nil:
		w.fresh = true
		if err := errors.Join(w.publish(ctx), w.planDocuments(false)); err != nil {
			return err
		}
		w.fresh, w.plan.tag = false, w.tag
	case !isPlanned:
		if err := w.look(ctx); err != nil {
			return err
		}
	}
	if err := w.act(ctx); err != nil {
		return err
	}
	switch base := w.row.base(); {
	case w.row.left:
		return w.Journal.add(entry{Reference: w.row.Reference, Gone: true})
	case w.at.sums != sums || w.at.base == "":
		return w.Journal.add(entry{Reference: w.row.Reference, sums: sums, Base: base})
	}
	return nil
}

// create creates the asset of the row, or finds the one that an earlier run created, and keeps its tokens.
func (w *work) create(ctx context.Context, sums sums) error {
	var created client.Created
	for _, key := range keysOf(w.row.Reference, sums) {
		err := w.calls.do(ctx, func() (err error) {
			created, err = w.Registry.CreateReferenced(ctx, w.row.Asset, w.row.Reference, key)
			return err
		})
		if err != nil {
			return err
		}
		if created.Access.Token != "" {
			break
		}
	}
	base := w.row.base()
	w.at = progress{created.Asset.ID, sums, base, false, created.Access, map[string]documentProgress{}}
	e := entry{Reference: w.row.Reference, sums: sums, Base: base, Data: &assetID{w.at.id}}
	if created.Access.Token != "" {
		e.Access = &created.Access
	}
	return w.Journal.add(e)
}

// prove returns an error if the tokens of the asset are no longer good, and says so in the journal.
func (w *work) prove(ctx context.Context) error {
	err := w.calls.do(ctx, func() error {
		for _, err := range w.Registry.Revisions(ctx, w.at.id, w.at.access.Token) {
			return err // the first revision is enough: only the owner sees it
		}
		return nil
	})
	status := client.StatusOf(err)
	if w.row.left && status == http.StatusNotFound {
		return errDeleted // a draft, which was removed
	}
	switch status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		none := entry{Reference: w.row.Reference, Data: &assetID{w.at.id}, Access: &client.Access{}}
		return cmp.Or(w.Journal.add(none), errDead)
	}
	if err == nil {
		err = w.read(ctx)
	}
	if err == nil && w.held.Status == client.Deleted {
		err = errDeleted
	}
	return err
}

func (w *work) write() client.Write { return client.Write{Token: w.at.access.Token, IfMatch: w.tag} }

// publish publishes the draft. If the asset is not a draft any more, somebody else has published it, and publish
// succeeds.
func (w *work) publish(ctx context.Context) error {
	err := w.calls.do(ctx, func() (err error) {
		w.held, err = w.Registry.Publish(ctx, w.at.id, w.write())
		return err
	})
	w.tag = w.held.Tag
	if client.IsForbidden(err) {
		if err := w.prove(ctx); err != nil {
			return err
		}
		if w.held.Status != client.Draft {
			err = nil
		}
	}
	return err
}

// read reads the asset and its tag.
func (w *work) read(ctx context.Context) error {
	err := w.calls.do(ctx, func() (err error) {
		w.held, err = w.Registry.Get(ctx, w.at.id)
		return err
	})
	w.tag = w.held.Tag
	return err
}

// The method `with` returns the document in the form that the registry takes. If the document has a file, the result
// also has the fields of the file.
func (d Document) with(file client.StoredFile) (document client.Document, err error) {
	text, err := json.Marshal(d.Fields)
	if err != nil {
		return document, err
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return document, err
	}
	if d.File != "" {
		document.URL, document.Hash = file.URL, file.Hash
		document.Title, document.Format = cmp.Or(document.Title, file.Title), cmp.Or(document.Format, file.Format)
	}
	return document, nil
}

// address returns a url without its query, because the registry stores the address of a file without the
// signature in the query.
func address(url string) string {
	before, _, _ := strings.Cut(url, "?")
	return before
}
