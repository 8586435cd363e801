package site

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/shared/filelink"
)

// maxFiles is the largest number of files of a past record about which a page asks whether they were removed.
const maxFiles = 20

// cited is how people cite a record as it was after a change.
type cited struct {
	Number   string // assetID
	Revision int64
	Leaf     string // hash of the leaf, in hexadecimal digits
}

// revision shows a record as it was after the change that the path names, with its proof. A change without a public
// content has no page: one of a draft, one into test mode, and one that was erased or has hidden fields.
func (s *Site) revision(w http.ResponseWriter, r request) error {
	id, text := r.PathValue("id"), r.PathValue("revision")
	n, err := strconv.ParseInt(text, 10, 64)
	if !assetID.MatchString(id) || err != nil || n < 1 || strconv.FormatInt(n, 10) != text {
		return noPage(w, r)
	}
	if err := s.takeReading(&r); err != nil {
		return err
	}
	defer func() { r.end() }()
	ctx, cancel := context.WithTimeout(r.Context(), pastWithin)
	defer cancel()
	after, err := s.registry.past(ctx, id, n)
	switch {
	case errors.Is(err, errNoLog), err == nil && after.Record == nil:
		return noPage(w, r)
	case errors.Is(err, errLarge):
		return err
	case err != nil:
		return Busy()
	}
	h, reads := history{State: allThere}, 0
	before, err := s.before(ctx, id, after, &reads)
	if errors.Is(err, errLarge) {
		h.State = cutOff
	} else if err != nil {
		return Busy()
	}
	root := after.Record
	removed := s.registry.removed(ctx, cursor{r.lang, s.config.Names, root, ""}.each("documents"))
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	h.Changes = []change{newChange(r.lang, before, after)}
	p := s.newAssetPage(r, id, root, h, nil)
	p.Line, p.Back = nil, assetPath(r.lang, id)
	p.Was = &cited{root.string("assetID"), n, after.Leaf}
	p.Check.Proof = p.Check.Saved
	for _, group := range p.Record.Documents {
		for i := range group.All {
			d := &group.All[i]
			d.mark(removed)
			for j := range d.Versions {
				d.Versions[j].mark(removed)
			}
		}
	}
	title := codenames.Cut(p.Record.Title.Text, maxTitle)
	v := s.view(r, fmt.Sprintf(texts["was.title"].in(r.lang), n)+": "+title, p)
	v.About, v.Scripts, v.NoIndex = p.Record.about(), []string{"asset.js"}, true
	return s.show(w, r, http.StatusOK, "asset", v)
}

// removed returns the addresses of documents whose files were taken down. It asks about the first maxFiles own files.
func (r *registry) removed(ctx context.Context, documents []cursor) map[string]bool {
	var asked sync.WaitGroup
	var addresses []string
	gone := make([]bool, maxFiles)
	for _, d := range documents {
		address := d.v.string("url")
		id, isKept := d.file().File()
		if !isKept || len(addresses) == maxFiles {
			continue
		}
		n := len(addresses)
		addresses = append(addresses, address)
		asked.Go(func() {
			status, _ := r.head(ctx, filelink.GetPath+"/"+id)
			gone[n] = status == http.StatusGone
		})
	}
	asked.Wait()
	all := map[string]bool{}
	for n, address := range addresses {
		all[address] = all[address] || gone[n]
	}
	return all
}

// mark says whether the file of a version was removed.
func (t *thing) mark(removed map[string]bool) {
	t.Removed = len(t.Title) > 0 && removed[string(t.Title[0].Href)]
}

// newAssetPage returns the body of a page with a record. The newest of the changes is the one that made the record.
func (s *Site) newAssetPage(r request, id string, root *value, past history, pictures []picture) assetPage {
	newest := int64(0)
	if len(past.Changes) > 0 {
		newest = past.Changes[0].Revision
	}
	p := assetPage{
		ID: id, Status: client.Status(root.string("status")), Test: root.string("mode") == string(client.TestMode),
		Line: steps(root, past), Past: past, Check: s.newCheck(id, root, newest), Checked: past.State != noLog,
		Pictures: pictures, Record: newRecord(r.lang, s.config.Names, root, s.config.Links),
	}
	if past.Older > 0 {
		p.Older = olderPath(r.lang, id, past.Older)
	}
	return p
}
