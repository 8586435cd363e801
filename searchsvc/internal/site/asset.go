package site

import (
	"net/http"
	"net/url"
	"strconv"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
)

// assetPage is the body of the page of an asset.
type assetPage struct {
	ID      string
	Status  client.Status
	Test    bool
	Record  record
	Line    []step
	Past    history
	Older   string // path of the page with older changes; "": there are no older changes
	Check   check
	Was     *cited // the record is a past one; nil: it is as it is now
	Back    string // path of the search that led here; "": no search led here
	Checked bool   // the record can be checked against the log

	Pictures []picture
	Archive  *archive // nil: the record has no files
}

// check is what the script and the command need in order to check a record.
type check struct {
	ID       string
	Modified string   // dateModified of the record
	Keys     []string // public keys of the log
	Proof    string   // path of the proof of the newest change, or of the change that the page shows
	Saved    string   // path of the proof that a browser saves
	File     string   // name of the saved file
}

// newCheck returns the check of a record after a change. Revision 0 stands for the newest change.
func (s *Site) newCheck(id string, root *value, revision int64) check {
	c := check{ID: id, Modified: root.string("dateModified"), Keys: s.config.LogKeys, File: id + ".json"}
	c.Proof = "/api/" + routes.Current + "/assets/" + id + "/proof"
	if c.Saved = c.Proof; revision > 0 {
		n := strconv.FormatInt(revision, 10)
		c.Saved, c.File = c.Proof+"?revision="+n, id+"-"+n+".json"
	}
	return c
}

// readAsset reads the record of the asset that the path names. A draft is not public, so it has no page.
func (s *Site) readAsset(r request) (id string, record *value, err error) {
	id = r.PathValue("id")
	if !assetID.MatchString(id) {
		return "", nil, noPage(nil, r)
	}
	if record, err = s.registry.asset(r.Context(), id); err != nil {
		return "", nil, err
	}
	if record.string("status") == string(client.Draft) {
		return "", nil, fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found")
	}
	return id, record, nil
}

// asset shows a record with its states, its newest changes and its proof.
func (s *Site) asset(w http.ResponseWriter, r request) error {
	if to, err := s.otherAddress(r); to != "" || err != nil {
		return redirect(w, r, to, err)
	}
	if err := s.takeReading(&r); err != nil {
		return err
	}
	defer func() { r.end() }()
	id, root, err := s.readAsset(r)
	if err != nil {
		return err
	}
	documents := cursor{r.lang, s.config.Names, root, ""}.each("documents")
	pictures := s.registry.pictures(r.Context(), documents)
	files := s.registry.archive(r.Context(), r.lang, id, documents)
	past := s.history(r.Context(), r.lang, id, 0) // after the files, because it may use up the visitor's rate limits
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	linked := linkedAsset(r.lang, r.base, root)
	p := s.newAssetPage(r, id, root, past, pictures)
	back, kept := backTo(r)
	p.Back, p.Archive = back, files
	v := s.view(r, codenames.Cut(p.Record.Title.Text, maxTitle), p)
	v.About, v.Kept, v.Scripts = p.Record.about(), kept, []string{"asset.js"}
	if len(pictures) > 0 {
		v.Image = r.base + pictures[0].Large
		v.Scripts = append(v.Scripts, "pictures.js")
	}
	if p.Checked {
		v.Feed = "/assets/" + id + "/feed.atom"
	}
	v.NoIndex = p.Test || p.Status == client.Deleted
	if !v.NoIndex {
		v.Linked = linked
	}
	return s.show(w, r, http.StatusOK, "asset", v)
}

func olderPath(l Lang, id string, from int64) string {
	return "/" + string(l) + "/assets/" + id + "/changes?from=" + strconv.FormatInt(from, 10)
}

// changesPage is the body of a page with older changes.
type changesPage struct {
	ID, Title string
	Past      history
	Older     string
}

// changes shows the changes of a record, the newest first, beginning with the revision that the query names.
func (s *Site) changes(w http.ResponseWriter, r request) error {
	from, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	if err != nil || from < 1 {
		return noPage(w, r)
	}
	if err := s.takeReading(&r); err != nil {
		return err
	}
	defer func() { r.end() }()
	id, root, err := s.readAsset(r)
	if err != nil {
		return err
	}
	past := s.history(r.Context(), r.lang, id, from)
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	p := changesPage{ID: id, Title: codenames.Cut(root.string("title"), maxTitle), Past: past}
	if past.Older > 0 {
		p.Older = olderPath(r.lang, id, past.Older)
	}
	v := s.view(r, texts["changes.title"].in(r.lang), p)
	v.Rest += "?" + url.Values{"from": {strconv.FormatInt(from, 10)}}.Encode()
	v.NoIndex = true
	return s.show(w, r, http.StatusOK, "changes", v)
}
