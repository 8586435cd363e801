package site

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"asset-registry/shared/filelink"
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
		asked.Go(func() { _, there[i] = r.head(ctx, all[i].Large) })
	}
	asked.Wait()
	at, isNone := -1, !slices.Contains(there, true)
	return slices.DeleteFunc(all, func(picture) bool {
		at++
		return isNone || at < len(there) && !there[at]
	})
}

// head reports whether the file at a path was taken down, and whether it is a picture that anybody can read. Both are
// false if the registry gives no clear answer.
func (r *registry) head(ctx context.Context, path string) (isRemoved, isPicture bool) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodHead, r.url+path, nil)
	if err != nil {
		return false, false
	}
	resp, err := r.http.Do(ask)
	if err != nil {
		return false, false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusGone,
		resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Type") == "image/jpeg"
}
