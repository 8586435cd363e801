package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/shared/export"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

const (
	maxCopyReaders = 128       // maximum number of whole copies that are sent at the same time
	copyPart       = 256 << 10 // bytes to send before the next check that the copy still exists
)

// routeCopies adds the routes of whole copies (docs/contract.md, "Whole copies").
func (a *API) routeCopies(r gin.IRoutes) {
	routeRead(r, routes.CopyManifest, httpserver.Handle(a.copiesManifest))
	routeRead(r, routes.Copy, httpserver.Handle(a.newestCopy))
	routeRead(r, routes.CopyByHash, httpserver.Handle(func(c *gin.Context) error {
		return a.copy(c, c.Param("name"), c.Param("file"), true)
	}))
}

func noCopy(format string, args ...any) error {
	return fault.New(fault.NotFound, fault.URL, "copy", format, args...)
}

// newestCopies returns the newest manifest of whole copies.
func (a *API) newestCopies() (snapshot.Manifest, error) {
	if a.snapshots.kept == nil {
		return snapshot.Manifest{}, noCopy("This registry keeps no whole copies; search, or follow the feed.")
	}
	m, err := a.snapshots.kept.NewestCopies()
	if errors.Is(err, snapshot.ErrNone) {
		return m, noCopy("There is no whole copy: ask again later, or search.")
	}
	return m, err
}

// copiesManifest answers with the list of the newest whole copies.
func (a *API) copiesManifest(c *gin.Context) error {
	m, err := a.newestCopies()
	if err != nil {
		return err
	}
	if done, err := unchanged(c, fmt.Sprintf(`"%d"`, m.Begun)); done || err != nil {
		return err
	}
	list := export.Manifest{Date: asset.FormatTime(m.Time(), a.zone), Position: printPosition(m.Position, a.zone)}
	list.Every = int64(a.snapshots.kept.Interval().Seconds())
	for _, f := range m.Copies {
		list.Files = append(list.Files, export.File{
			Name: f.Name, Path: routes.Data + "/" + f.SHA256 + "/" + f.Name, SHA256: f.SHA256, Bytes: f.Bytes, Rows: f.Rows,
		})
	}
	return httpserver.JSON(c, http.StatusOK, map[string]any{"data": list})
}

// newestCopy answers with the newest whole copy of a name. A client that resumes a download names, in If-Range, the
// copy that it began with, and gets the rest of that copy. Without If-Range, newestCopy does not know which copy
// the client began with, so it ignores Range.
func (a *API) newestCopy(c *gin.Context) error {
	m, err := a.newestCopies()
	if err != nil {
		return err
	}
	name := c.Param("name")
	at := slices.IndexFunc(m.Copies, func(f snapshot.Copy) bool { return f.Name == name })
	if at < 0 {
		return noCopy("There is no such copy; there are %s.", strings.Join(copyNames(), ", "))
	}
	begun := strings.Trim(c.GetHeader("If-Range"), `"`)
	if c.GetHeader("Range") != "" && a.hasCopy(begun, name) {
		return a.copy(c, begun, name, true)
	}
	return a.copy(c, m.Copies[at].SHA256, name, false)
}

func copyNames() (names []string) {
	for _, f := range export.Whole {
		names = append(names, f.Name)
	}
	return names
}

func (a *API) hasCopy(hash, name string) bool {
	file, err := a.snapshots.kept.Copy(hash, name)
	return err == nil && file.Close() == nil
}

// copy answers with the whole copy that has the given hash and name. The argument `isOwn` says that the request
// names exactly this copy, by the hash in its address or in If-Range.
func (a *API) copy(c *gin.Context, hash, name string, isOwn bool) error {
	if a.snapshots.kept == nil {
		return noCopy("This registry keeps no whole copies.")
	}
	select {
	case a.snapshots.copiers <- struct{}{}:
		defer func() { <-a.snapshots.copiers }()
	default:
		return overloaded()
	}
	file, err := a.snapshots.kept.Copy(hash, name)
	if errors.Is(err, snapshot.ErrNone) {
		return noCopy("There is no such copy any more; ask %s for the newest one.", routes.Data+"/"+name)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	as := answeredFile{
		tag: `"` + hash + `"`, media: mediaOf(name), caching: "no-cache", hasRanges: isOwn,
		send: func(c *gin.Context, part *io.SectionReader) { a.sendCopy(c, file, part) },
	}
	h := c.Writer.Header()
	if c.FullPath() == routes.CopyByHash {
		as.caching = cacheParts
	} else {
		h.Set("Content-Location", routes.Data+"/"+hash+"/"+name)
	}
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	if err := a.sendFile(c, file, as); err != nil {
		h.Del("Content-Disposition")
		h.Del("Content-Location")
		return err
	}
	return nil
}

// mediaOf returns the media type of a whole copy by its name.
func mediaOf(name string) string {
	for _, f := range export.Whole {
		if f.Name == name {
			return f.ContentType
		}
	}
	return ""
}

var errRemoved = errors.New("the whole copy was removed while it was sent")

// sendCopy sends a part of a whole copy as fast as the client reads it. It ends when the copy is removed:
// otherwise slow clients would keep removed copies on the disk.
func (a *API) sendCopy(c *gin.Context, file *os.File, part *io.SectionReader) {
	_, first, left := part.Outer()
	_, err := file.Seek(first, io.SeekStart)
	sender := httpserver.NewSender(c.Writer, a.downloads)
	for left > 0 && err == nil {
		var n int64
		n, err = io.Copy(sender, io.LimitReader(file, min(left, copyPart)))
		left -= n
		switch {
		case err != nil:
		case n == 0:
			err = io.ErrUnexpectedEOF
		case left > 0 && isRemoved(file):
			err = errRemoved
		}
	}
	if err != nil {
		_ = c.Error(fmt.Errorf("send whole copy: %w", err)) // the client does not get this error: the log has it
		panic(http.ErrAbortHandler)                         // end the connection, because the answer is incomplete
	}
}

// isRemoved reports whether an open file has been removed from its directory.
func isRemoved(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
