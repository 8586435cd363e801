package httpapi

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gabriel-vasile/mimetype"
	"github.com/gin-gonic/gin"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/httpserver"
)

// The bounds of an archive (docs/contract.md, "Files").
const (
	archiveFiles  = 1000
	archiveBytes  = 1 << 30          // bytes of all files of one archive
	archiveWithin = time.Hour        // time for sending one
	namesWithin   = 10 * time.Second // time for finding its files
	nameBytes     = 180              // bytes of a name in it, without the number and the ending
)

// The cost of finding the files of an archive, in bytes as httpserver.CountWork counts them. The gateway charges a
// request for each MiB.
const (
	fileWork = 64 << 10
	textWork = 64 // of each byte of the documents: together as much as reading them costs
)

// document is a version of a document of an asset.
type document struct {
	filelink.Document
	ID, Title    string
	DateModified time.Time
}

// entry is a file in an archive.
type entry struct {
	file.File
	name string
	at   time.Time // when the document was changed
}

// header returns the header of the file. It is made anew each time, because package zip adds to it.
func (e entry) header() *zip.FileHeader { return &zip.FileHeader{Name: e.name, Modified: e.at.UTC()} }

// archive answers GET and HEAD of routes.Archive with the public files of an asset, in one archive without compression.
func (a *API) archive(c *gin.Context) error {
	all, err := a.entries(c)
	if err != nil {
		return err
	}
	length, err := lengthOf(all)
	if err != nil {
		return err
	}
	isHead := c.Request.Method == http.MethodHead
	var blob file.Blob
	if !isHead { // while the bytes are away, the answer is a refusal; after the header, it could only break off
		if blob, err = a.Files.OpenVerified(c.Request.Context(), all[0].File); err != nil {
			return err
		}
	}
	h := c.Writer.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", disposition("attachment", c.Param("file")+".zip"))
	h.Set("Content-Length", strconv.FormatInt(length, 10))
	h.Set("Cache-Control", "no-store")
	h.Set(httpserver.TotalHeader, strconv.Itoa(len(all)))
	c.Status(http.StatusOK)
	if isHead {
		c.Writer.WriteHeaderNow()
		return nil
	}
	pace := a.down
	pace.All = archiveWithin
	to := &paced{ResponseWriter: c.Writer, sender: httpserver.NewSender(c.Writer, pace), sent: &a.Files.Counts.Sent}
	if err := a.pack(c.Request.Context(), to, all, blob); err != nil {
		_ = c.Error(err)            // for the log; gin returns its argument
		panic(http.ErrAbortHandler) // ends the connection, so that no client takes a part for the whole
	}
	return nil
}

// pack writes the archive. The blob is that of the first file.
func (a *API) pack(ctx context.Context, to io.Writer, all []entry, blob file.Blob) error {
	z := zip.NewWriter(to)
	for i, e := range all {
		if i > 0 {
			var err error
			if blob, err = a.Files.OpenVerified(ctx, e.File); err != nil {
				return err
			}
		}
		w, err := z.CreateHeader(e.header())
		if err == nil {
			_, err = io.CopyN(w, blob, e.Size)
		}
		if closed := blob.Close(); err != nil || closed != nil {
			return fmt.Errorf("file %s in an archive: %w", e.ID, cmp.Or(err, closed))
		}
	}
	return z.Close()
}

// lengthOf returns the bytes of an archive: those of the files, and those of an archive of empty files. They have the
// same headers.
func lengthOf(all []entry) (bytes int64, err error) {
	var empty counted
	z := zip.NewWriter(&empty)
	for _, e := range all {
		if _, err := z.CreateHeader(e.header()); err != nil {
			return 0, fmt.Errorf("name the files of an archive: %w", err)
		}
		bytes += e.Size
	}
	err = z.Close()
	return bytes + int64(empty), err
}

// counted counts the bytes that are written.
type counted int64

func (n *counted) Write(p []byte) (int, error) {
	*n += counted(len(p))
	return len(p), nil
}

// entries returns the files of an archive, the document that changed first before the others. It opens no file.
func (a *API) entries(c *gin.Context) (all []entry, err error) {
	id := c.Param("file")
	if !filelink.IsID(id) {
		return nil, fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found")
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), namesWithin)
	defer cancel()
	text, err := a.Documents(ctx, c.GetHeader(httpserver.CallerHeader), id)
	if err != nil && fault.KindOf(err) == fault.Internal {
		const says = "The documents cannot be read now; repeat the request later."
		err = fmt.Errorf("%w: %w", fault.New(fault.Unavailable, fault.URL, "documents", says), err)
	}
	if err != nil {
		return nil, err
	}
	httpserver.CountWork(c.Request.Context(), textWork*int64(len(text)))
	documents, err := a.newest(text)
	if err != nil {
		return nil, fmt.Errorf("read the documents of asset %s: %w", id, err)
	}
	if len(documents) > archiveFiles {
		return nil, tooLarge()
	}
	bytes := int64(0)
	for _, d := range documents {
		httpserver.CountWork(c.Request.Context(), fileWork)
		f, isThere, err := a.public(ctx, d)
		if err != nil {
			return nil, err
		}
		if isThere {
			all, bytes = append(all, entry{f, "", d.DateModified}), bytes+f.Size
			all[len(all)-1].name = fmt.Sprintf("%02d %s", len(all), titled(d.Title, f))
		}
	}
	switch {
	case bytes > archiveBytes:
		return nil, tooLarge()
	case len(all) == 0:
		return nil, fault.New(fault.NotFound, fault.URL, "documents", "The asset has no files that everybody can read.")
	}
	return all, nil
}

func tooLarge() error {
	return fault.New(fault.TooLarge, fault.URL, "documents",
		"An archive has at most %d files and %d bytes of files; read these files one by one.", archiveFiles, archiveBytes)
}

// newest returns the newest version of each document that names a file of this registry, in the order of their changes.
func (a *API) newest(text []byte) (found []document, err error) {
	var versions []document
	if len(text) > 0 {
		err = json.Unmarshal(text, &versions)
	}
	last := map[string]int{}
	for i, d := range versions {
		last[d.ID] = i
	}
	for i, d := range versions {
		if _, isKept := a.fileOf(d); isKept && last[d.ID] == i {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b document) int { return a.DateModified.Compare(b.DateModified) })
	return found, err
}

// fileOf returns the id of the file that a document names. isKept is false if the address is one of another host, or if
// the bytes have not come.
func (a *API) fileOf(d document) (id string, isKept bool) {
	if a.MayServe != nil { // a mirror does not know the address of its registry
		return d.File()
	}
	id, _, _ = a.Base.Parse(d.URL)
	return id, id != "" && d.SHA256 != ""
}

// public returns the file of a document. isThere is false if not everybody can read it.
func (a *API) public(ctx context.Context, d document) (f file.File, isThere bool, err error) {
	id, _ := a.fileOf(d)
	f, err = a.Files.Get(ctx, id)
	if err == nil && a.MayServe != nil {
		err = a.MayServe(ctx, f)
	}
	switch kind := fault.KindOf(err); {
	case err == nil:
		return f, f.Named && f.State == file.Stored && f.SHA256 == d.SHA256, nil
	case kind == fault.NotFound, kind == fault.Gone:
		return f, false, nil
	}
	return f, false, err
}

// ending matches the end of a file's name that says its type.
var ending = regexp.MustCompile(`^\.[A-Za-z0-9]{1,8}$`)

// titled returns a name for a file that every system takes, behind a number and a blank: the title of its document, and
// the ending of its own name or of its type.
func titled(title string, f file.File) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r): // such as signs that turn the direction of a text
			return -1
		case strings.ContainsRune(`<>:"/\|?*`, r), !unicode.IsPrint(r) && !unicode.IsSpace(r), r == unicode.ReplacementChar:
			return '_'
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, cmp.Or(title, f.Title))
	end := path.Ext(f.Title)
	if !ending.MatchString(end) {
		end = ""
		if known := mimetype.Lookup(mediaType(f.Detected)); known != nil {
			end = known.Extension()
		}
	}
	if own := path.Ext(name); strings.EqualFold(own, end) {
		name = strings.TrimSuffix(name, own)
	}
	at := 0
	for i, r := range name {
		if next := i + len(string(r)); next <= nameBytes {
			at = next
		}
	}
	return strings.TrimRight(cmp.Or(strings.Trim(name[:at], " ."), "file")+end, " .")
}
