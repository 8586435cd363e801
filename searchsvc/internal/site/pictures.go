package site

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"asset-registry/shared/filelink"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

const (
	maxPictures    = 200         // pictures on a page
	askedPictures  = 12          // those of them that a page asks for
	picturesWithin = time.Second // time limit for finding out which pictures can be read
)

// picture is an illustration that a page shows.
type picture struct {
	Small, Large string // paths of the two versions
	Title        part
}

// pictures returns illustrations of a record, in the order of the record. Of the first ones it returns only those whose
// small versions can be read now. If none of these can be read, as on a mirror without files, it returns none.
func (r *registry) pictures(ctx context.Context, documents []cursor) []picture {
	newest := map[string]int{} // maps the id of each document to the index of its newest version
	for i, d := range documents {
		newest[d.v.string("id")] = i
	}
	var all []picture
	for i, d := range documents {
		id := filelink.PictureOf(d.v.string("documentType"), d.v.string("format"), d.v.string("sha256"), d.v.string("url"))
		if id == "" || newest[d.v.string("id")] != i || len(all) == maxPictures {
			continue
		}
		file := filelink.GetPath + "/" + id
		all = append(all, picture{
			Small: filelink.Picture(file, filelink.SmallPicture), Large: filelink.Picture(file, filelink.LargePicture),
			Title: d.repeat("title"),
		})
	}
	ctx, cancel := context.WithTimeout(ctx, picturesWithin)
	defer cancel()
	var asked sync.WaitGroup
	there := make([]bool, min(askedPictures, len(all)))
	for i := range there {
		asked.Go(func() {
			status, h := r.head(ctx, all[i].Large)
			there[i] = status == http.StatusOK && h.Get("Content-Type") == "image/jpeg"
		})
	}
	asked.Wait()
	at, isNone := -1, !slices.Contains(there, true)
	return slices.DeleteFunc(all, func(picture) bool {
		at++
		return isNone || at < len(there) && !there[at]
	})
}

// head returns the status and the header of the answer about a path; 0 if there is no answer.
func (r *registry) head(ctx context.Context, path string) (status int, h http.Header) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodHead, r.url+path, nil)
	if err != nil {
		return 0, nil
	}
	resp, err := r.http.Do(ask)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header
}

// archive is the archive with all documents of an asset.
type archive struct {
	Path, Files, Size string
	Why               string // name of the text that says why there is no archive; "": there is one
}

// archive returns the archive of a record; nil if it has no files that everybody can read.
func (r *registry) archive(ctx context.Context, l Lang, id string, documents []cursor) *archive {
	isKept := func(d cursor) bool { _, is := d.file().File(); return is }
	if !slices.ContainsFunc(documents, isKept) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, picturesWithin)
	defer cancel()
	path := strings.Replace(routes.Archive, ":file", id, 1)
	switch status, h := r.head(ctx, path); status {
	case http.StatusOK:
		return &archive{path, h.Get(httpserver.TotalHeader), size(l, h.Get("Content-Length")), ""}
	case http.StatusNotFound:
		return nil
	case http.StatusRequestEntityTooLarge:
		return &archive{Why: "archive.large"}
	default:
		return &archive{Why: "archive.later"}
	}
}
