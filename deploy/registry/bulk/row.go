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
	"time"

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

// errOther is the error for a row that was loaded before under the same reference, but with other fields.
var errOther = errors.New("the row was imported with other fields under this reference: " +
	"change the asset itself, or give the row another reference")

// work is the state of a worker while it loads one row.
type work struct {
	*Load
	row  Row
	at   progress
	held client.Asset // the asset when it was last read; the zero value: it was not read yet
	tag  client.Tag   // tag of the asset; "": unknown
}

// row creates and publishes the asset of a row, and adds its documents. If it returns an error, the load ends.
func (l *Load) row(ctx context.Context, row Row) (Result, error) {
	w := &work{Load: l, row: row}
	err := w.do(ctx)
	result := Result{Row: row.Number, Reference: ReadReference(row.Reference), ID: w.at.id, State: Done}
	status := client.StatusOf(err)
	_, isLocal := errors.AsType[*fs.PathError](err)
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, errNoToken), errors.Is(err, errDead), errors.Is(err, errDeleted):
		result.State = NoToken
	case errors.Is(err, errNotKept):
		return failed(result, err)
	case errors.Is(err, errOther), isLocal, status >= 400 && status != http.StatusUnauthorized && !isAway(err):
		result.State = Refused
	default:
		return failed(result, err)
	}
	result.Faults = row.refusal(err)
	return result, nil
}

// failed returns the result for a row, and the error that ends the load.
func failed(result Result, err error) (Result, error) {
	result.State = Failed
	result.Faults = []Fault{{Row: result.Row, Text: err.Error()}}
	return result, err
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

func (w *work) do(ctx context.Context) error {
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
	case w.at.sums.Same != sums.Same && w.at.sums.Bytes != sums.Bytes:
		return errOther
	case w.at.access.Token == "":
		return errNoToken
	}
	if known != nil {
		if err := w.prove(ctx); err != nil {
			return err
		}
	}
	if !w.at.published {
		if err := w.publish(ctx); err != nil {
			return err
		}
	}
	for i, d := range w.row.Documents {
		if err := w.document(ctx, i+1, d); err != nil {
			return &documentError{i, err}
		}
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
	w.at = progress{id: created.Asset.ID, sums: sums, access: created.Access}
	e := entry{Reference: w.row.Reference, sums: sums, Data: &assetID{w.at.id}}
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
	switch client.StatusOf(err) {
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
	if err != nil {
		return err
	}
	return w.Journal.add(entry{Reference: w.row.Reference, Published: true})
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

// keepFile is the greatest age at which a later run still uses an upload. Older uploads may be gone, because the
// registry keeps an upload without a document only for a day.
const keepFile = 12 * time.Hour

// document adds a document with its file. If the asset already has the document, it does nothing.
func (w *work) document(ctx context.Context, number int, d Document) error {
	known := w.at.documents[number]
	if known.added {
		return nil
	}
	if w.held.ID == "" {
		if err := w.read(ctx); err != nil {
			return err
		}
	}
	document, err := d.with(known.file)
	if err != nil {
		return err
	}
	if d.File != "" && !holds(w.held, document) && (known.file.URL == "" || time.Since(known.at) > keepFile) {
		if known.file, err = w.upload(ctx, number, d.File); err != nil {
			return err
		}
		if document, err = d.with(known.file); err != nil {
			return err
		}
	}
	if err := w.add(ctx, document); err != nil {
		return err
	}
	return w.Journal.add(entry{Reference: w.row.Reference, Document: number, Added: true})
}

// upload uploads a file. It makes sure that the file's address is durable in the journal before a document refers to
// the file.
func (w *work) upload(ctx context.Context, number int, name string) (stored client.StoredFile, err error) {
	if err := w.Files.check(name); err != nil {
		return stored, &fs.PathError{Op: "upload", Path: name, Err: err}
	}
	err = w.calls.do(ctx, func() (err error) {
		stored, err = w.Registry.StoreFile(ctx, w.Files, name)
		return err
	})
	if err != nil {
		return stored, err
	}
	return stored, w.Journal.add(entry{
		Reference: w.row.Reference, Document: number, File: &stored, At: time.Now().UTC().Truncate(time.Second),
	})
}

// add adds a document to the asset exactly once. Each try sends the tag that the asset had before,
// and fails if the asset has a different tag now. So only one try can succeed.
func (w *work) add(ctx context.Context, d client.Document) error {
	for !holds(w.held, d) {
		var added client.Document
		err := w.calls.do(ctx, func() (err error) {
			added, err = w.Registry.Documents(w.at.id).Add(ctx, d, w.write())
			return err
		})
		if err == nil {
			w.tag = added.Tag
			return nil
		}
		if !client.IsChanged(err) {
			return err
		}
		if err := w.read(ctx); err != nil {
			return err
		}
	}
	return nil
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

// holds reports whether an asset has a document with the same address, title and type as the given document.
func holds(a client.Asset, d client.Document) bool {
	for _, has := range a.Documents {
		if address(has.URL) == address(d.URL) && has.Title == d.Title && has.DocumentType == d.DocumentType {
			return true
		}
	}
	return false
}

// address returns a url without its query, because the registry stores the address of a file without the
// signature in the query.
func address(url string) string {
	before, _, _ := strings.Cut(url, "?")
	return before
}
