package asset

import (
	"slices"
	"strconv"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/filelink"
)

// The fields by which a document says what file of this registry it names (docs/contract.md,
// "Files").
const (
	sha256Field = "sha256"
	sizeField   = "size"
)

// File is what a document says about a file of this registry. The zero value says nothing.
type File struct {
	SHA256 string // 64 hexadecimal digits
	Size   int64
}

// in returns a document that says what it is.
func (f File) in(document record.Object) record.Object {
	if f.SHA256 == "" {
		return document
	}
	size := record.Number(strconv.FormatInt(f.Size, 10))
	return documentModel.ordered(document.With(sha256Field, f.SHA256).With(sizeField, size))
}

// thumbnails is a field of documents that only their own path shows. It is no part of the record.
const thumbnails = "thumbnails"

// withThumbnails returns a document with the addresses of the small versions of its file, if it is
// an illustration, and the file is a picture of this registry (docs/files.md, "Pictures").
func withThumbnails(document record.Object) record.Object {
	isOurs := document.Text(sha256Field) != ""
	if !isOurs || document.Text("documentType") != filelink.Illustration || !filelink.IsPicture(document.Text("format")) {
		return document
	}
	var all record.List
	for _, side := range []int{filelink.SmallPicture, filelink.LargePicture} {
		all = append(all, record.Object{
			{Name: "url", Value: filelink.Picture(document.Text("url"), side)},
			{Name: "side", Value: record.Number(strconv.Itoa(side))},
		})
	}
	return document.With(thumbnails, all)
}

// FileIn returns what a document says about its file.
func FileIn(document record.Object) File {
	size, _ := document.Get(sizeField).(record.Number)
	n, err := strconv.ParseInt(string(size), 10, 64)
	if err != nil {
		return File{}
	}
	return File{document.Text(sha256Field), n}
}

// WithFile returns the asset after a file of an address has come: its documents of that address
// say what the file is. Those that say it already stay as they are.
func (a Asset) WithFile(address string, f File) Asset {
	const field = "documents"
	list := slices.Clone(a.fields.List(field))
	for i, element := range list {
		document, _ := element.(record.Object)
		if document.Text("url") == address && document.Text(sha256Field) == "" {
			list[i] = f.in(document)
		}
	}
	return finish(a.fields.With(field, list), nil)
}
