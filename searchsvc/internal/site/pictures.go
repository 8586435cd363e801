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
	maxPictures    = 12          // pictures on a page
	picturesWithin = time.Second // time limit for finding out which pictures can be read
)

// picture is an illustration that a page shows.
type picture struct {
	Small, Large string // paths of the two versions
	Title        part
}

// pictures returns illustrations of a record, in the order of the record. It returns only an illustration whose
// small versions can be read now. On a mirror without files it returns none.
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
	there := make([]bool, len(all))
	for i := range all {
		asked.Go(func() { there[i] = r.has(ctx, all[i].Large) })
	}
	asked.Wait()
	at := -1
	return slices.DeleteFunc(all, func(picture) bool {
		at++
		return !there[at]
	})
}

// The method `has` reports whether anybody can read the file at a path. It returns false if the registry gives no clear
// answer.
func (r *registry) has(ctx context.Context, path string) bool {
	ask, err := http.NewRequestWithContext(ctx, http.MethodHead, r.url+path, nil)
	if err != nil {
		return false
	}
	resp, err := r.http.Do(ask)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Type") == "image/jpeg"
}
