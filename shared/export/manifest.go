package export

// Manifest lists the newest whole copies (docs/contract.md, "Whole copies").
type Manifest struct {
	Date     string `json:"date"`     // when the snapshot of the copies was begun, in ISO 8601
	Position string `json:"position"` // of the snapshot, as dateModified and offset have it
	Files    []File `json:"files"`    // in the order of Whole
}

// File is one whole copy.
type File struct {
	Name   string `json:"name"`   // of the form (Whole)
	Path   string `json:"path"`   // of this copy; it never has other bytes
	SHA256 string `json:"sha256"` // in hexadecimal digits
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"` // rows, lines or features
}
