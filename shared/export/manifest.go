package export

// Manifest lists the newest whole copies (docs/contract.md, "Whole copies").
type Manifest struct {
	Date     string `json:"date"`            // when the snapshot of the copies was begun, in ISO 8601
	Position string `json:"position"`        // position of the snapshot, printed like dateModified and offset
	Every    int64  `json:"every,omitempty"` // seconds between two copies; 0: they are made on demand only
	Files    []File `json:"files"`           // in the order of Whole
}

// File is one whole copy.
type File struct {
	Name   string `json:"name"`   // name of the format, as in the list Whole
	Path   string `json:"path"`   // path of this copy; the bytes at this path never change
	SHA256 string `json:"sha256"` // in hexadecimal digits
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"` // rows, lines or features
}
