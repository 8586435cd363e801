package snapshot

import (
	"bytes"

	"asset-registry/shared/filelink"
)

// sumMember is in each asset with a document whose file the registry keeps.
const sumMember = `"sha256"`

// count adds the files that the assets of some lines name: of each asset, each file once. So memory does
// not grow with the number of files, and a file that several assets name counts for each. A document that
// is none, which a mirror may have been sent, names no file.
func (f *Files) count(lines []byte) {
	for line := range bytes.Lines(lines) {
		if !bytes.Contains(line, []byte(sumMember)) {
			continue
		}
		documents, _ := filelink.Documents(line)
		seen := map[string]bool{}
		for _, d := range documents {
			if id, isKept := d.File(); isKept && !seen[id] {
				seen[id] = true
				f.Count++
				f.Bytes += d.Size
			}
		}
	}
}
