package asset

import (
	"slices"
	"strconv"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/filelink"
)

// The fields of a document that describe its file, if this registry keeps the file (docs/contract.md, "Files").
const (
	sha256Field = "sha256"
	sizeField   = "size"
)

// File has the hash and the size of a file of this registry, as a document states them. The zero value means that the
// document has no such file.
type File struct {
	SHA256 string // 64 hexadecimal digits
	Size   int64
}

// The method `in` returns a document with the hash and the size of f. The zero File changes nothing.
func (f File) in(document record.Object) record.Object {
	if f.SHA256 == "" {
		return document
	}
	size := record.Number(strconv.FormatInt(f.Size, 10))
	return documentModel.ordered(document.With(sha256Field, f.SHA256).With(sizeField, size))
}

// thumbnails is a field that is not stored. Only the answer to a read of a single document has it.
const thumbnails = "thumbnails"

// withThumbnails adds the addresses of the small versions of a document's file. It does so only if the document
// is an illustration, and the document's file is a picture that this registry keeps (docs/files.md, "Pictures").
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

// FileIn returns the hash and the size that a document has for its file.
func FileIn(document record.Object) File {
	size, _ := document.Get(sizeField).(record.Number)
	n, err := strconv.ParseInt(string(size), 10, 64)
	if err != nil {
		return File{}
	}
	return File{document.Text(sha256Field), n}
}

// WithFile returns the asset after the file at the given address has arrived. Documents with this address get the
// hash and the size of the file. Documents that already have a hash do not change.
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
