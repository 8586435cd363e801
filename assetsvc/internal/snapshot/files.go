package snapshot

import (
	"bytes"

	"asset-registry/shared/filelink"
)

// sumMember is in the text of each asset with a file that the registry keeps. An asset without this text need
// not be parsed.
const sumMember = `"sha256"`

// count adds the files that the assets in the given lines name. It counts a file once for each asset that names the
// file. So count need not remember all files, and its memory does not grow. It ignores malformed documents, which a
// mirror may have received.
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
