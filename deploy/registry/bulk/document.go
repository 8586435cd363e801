package bulk

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"asset-registry.example/client"
)

// key names the document in the journal.
func (d Document) key() string { return fmt.Sprint(d.values()["documentType"], "\n", d.File) }

// values returns the fields of the document by their names.
func (d Document) values() map[string]any {
	return leavesOf(d.Fields)
}

// known returns the upload of a document in a former run. Journals of the program before this one have its number.
func (w *work) known(i int) documentProgress {
	if known, ok := w.at.documents[w.row.Documents[i].key()]; ok {
		return known
	}
	return w.at.documents[strconv.Itoa(i+1)]
}

// hash returns the hash of a document's file, as the registry shows it.
func (w *work) hash(d Document) (string, error) {
	if err := w.files.check(d.File); err != nil {
		return "", &fs.PathError{Op: "read", Path: d.File, Err: err}
	}
	file, err := w.files.Open(d.File)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := md5.New()
	_, err = io.Copy(sum, file)
	return "md5:" + hex.EncodeToString(sum.Sum(nil)), err
}

// matches returns the ids of the asset's documents that are the row's, or "". A document is known by its
// type, its title and its content, or else by the address of its upload. At last, one with the type and
// the title is taken for another version, if there is just one.
func (w *work) matches(newest map[string]client.Document, hashes []string) []string {
	ids := make([]string, len(w.row.Documents))
	isAlike := func(i int, has client.Document) bool {
		made, _ := w.row.Documents[i].with(client.StoredFile{Title: path.Base(w.row.Documents[i].File)})
		return newest[has.ID].URL == has.URL && has.DocumentType == made.DocumentType && has.Title == made.Title
	}
	for way, fits := range []func(i int, has client.Document) bool{
		func(i int, has client.Document) bool {
			d := w.row.Documents[i]
			return isAlike(i, has) && (d.File != "" && hashes[i] == has.Hash || d.values()["url"] == has.URL)
		},
		func(i int, has client.Document) bool {
			known := w.known(i).file.URL
			return known != "" && address(known) == address(has.URL)
		},
		isAlike,
	} {
		for i := range ids {
			var found []string
			for _, has := range w.held.Documents {
				if ids[i] == "" && !slices.Contains(ids, has.ID) && !slices.Contains(found, has.ID) && fits(i, has) {
					found = append(found, has.ID)
				}
			}
			if len(found) == 1 || len(found) > 1 && way < 2 {
				ids[i] = found[0]
			}
		}
	}
	return ids
}

// planDocuments plans versions of documents whose files were replaced, and documents that the asset lacks. The argument
// isNew says that the row has changed: then additions are changes too, and not the rest of an interrupted import.
func (w *work) planDocuments(isNew bool) error {
	newest := map[string]client.Document{} // by id
	for _, has := range w.held.Documents {
		newest[has.ID] = has
	}
	hashes := make([]string, len(w.row.Documents))
	for i, d := range w.row.Documents {
		if d.File == "" || w.fresh {
			continue
		}
		hash, err := w.hash(d)
		if err != nil {
			return err
		}
		hashes[i] = hash
	}
	for i, id := range w.matches(newest, hashes) {
		d, at := w.row.Documents[i], fmt.Sprintf("%s.%d", documents, i)
		fields, has, column := d.values(), newest[id], w.row.column(fmt.Sprintf("%s.%d.%s", documents, i, fileField))
		known := w.known(i).file
		isOurs := slices.ContainsFunc(w.held.Documents, func(v client.Document) bool {
			return address(v.URL) == address(known.URL)
		})
		changed := client.Fields{}
		for name, value := range fields {
			old := leavesOf(has)[name]
			if isNew && id != "" && fmt.Sprint(old) != fmt.Sprint(value) && !w.at.base.has(join(at, name), value) {
				w.change(w.row.column(join(at, name)), "%s becomes %s", shown(old), shown(value))
				changed[name] = value
			}
		}
		switch {
		case id == "":
			if isNew {
				w.change(column, "%s is a new document", quoted(cmp.Or(d.File, fmt.Sprint(fields["url"]))))
			}
			w.plan.steps = append(w.plan.steps, w.document(i, "", hashes[i]))
		case d.File != "" && hashes[i] != has.Hash && (hashes[i] != known.Hash || !isOurs) || changed["url"] != nil:
			if d.File != "" {
				w.change(column, "%s has changed: it becomes a new version of its document", quoted(d.File))
			}
			d.Fields = maps.Clone(d.Fields)
			if d.Fields["title"] == nil {
				d.Fields["title"] = has.Title
			}
			w.row.Documents[i] = d
			w.plan.steps = append(w.plan.steps, w.document(i, id, hashes[i]))
		case len(changed) > 0:
			w.plan.steps = append(w.plan.steps, send(func(ctx context.Context, w *work) (client.Tagged, error) {
				patched, err := w.Registry.Documents(w.at.id).Patch(ctx, id, changed, w.write())
				return patched.Tagged, err
			}))
		}
	}
	return nil
}

// leavesOf returns the leaves of an object that JSON can have.
func leavesOf(object any) map[string]any {
	text, _ := json.Marshal(object)
	return leaves(text)
}

// keepFile is the greatest age at which a later run still uses an upload. Older uploads may be gone, because the
// registry keeps an upload without a document only for a day.
const keepFile = 12 * time.Hour

// document returns a step that adds a document of the row with its file, or a version of the document `id`. An error
// names the document.
func (w *work) document(i int, id, hash string) step {
	d := w.row.Documents[i]
	return func(ctx context.Context, w *work) error {
		known := w.known(i)
		if d.File != "" && (known.file.URL == "" || known.file.Hash != hash || time.Since(known.at) > keepFile) {
			stored, err := w.upload(ctx, d)
			if err != nil {
				return &documentError{i, err}
			}
			known.file = stored
		}
		document, err := d.with(known.file)
		if err != nil {
			return err
		}
		err = send(func(ctx context.Context, w *work) (client.Tagged, error) {
			to, sent := w.Registry.Documents(w.at.id), document
			var err error
			if id == "" {
				sent, err = to.Add(ctx, document, w.write())
			} else {
				sent, err = to.AddVersion(ctx, id, document, w.write())
			}
			return sent.Tagged, err
		})(ctx, w)
		if err != nil {
			return &documentError{i, err}
		}
		return nil
	}
}

// upload uploads a file. It makes sure that the file's address is durable in the journal before a document refers to
// the file.
func (w *work) upload(ctx context.Context, d Document) (stored client.StoredFile, err error) {
	if err := w.files.check(d.File); err != nil {
		return stored, &fs.PathError{Op: "upload", Path: d.File, Err: err}
	}
	err = w.calls.do(ctx, func() (err error) {
		stored, err = w.Registry.StoreFile(ctx, w.files, d.File)
		return err
	})
	if err != nil {
		return stored, err
	}
	at := time.Now().UTC().Truncate(time.Second)
	w.at.documents[d.key()] = documentProgress{stored, at}
	return stored, w.Journal.add(entry{Reference: w.row.Reference, Name: d.key(), File: &stored, At: at})
}
