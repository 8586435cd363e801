// Package docs has the documents of the registry, for the programs that serve them.
package docs

import "embed"

// Files has the documents. Their names are as in this folder.
//
//go:embed *.md
var Files embed.FS
