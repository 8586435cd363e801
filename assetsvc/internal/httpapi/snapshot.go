package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// Snapshots gives access to the snapshots of a directory (snapshot.Keeper).
type Snapshots interface {
	Newest() (snapshot.Manifest, error)
	Segment(sha256 string) (*os.File, error)
	NewestCopies() (snapshot.Manifest, error)
	Interval() time.Duration
	Copy(sha256, name string) (*os.File, error)
}

// snapshots answers requests for snapshots.
type snapshots struct {
	kept    Snapshots // nil: the registry keeps no snapshots
	readers chan struct{}
	copiers chan struct{} // limits how many requests read whole copies at the same time

	mu    sync.Mutex
	begun int64  // time that names the snapshot whose manifest is in the field `text`
	text  []byte // the manifest in the form of an answer
}

const (
	maxSegmentReaders = 512      // maximum number of segments that are sent at the same time
	segmentBuffer     = 32 << 10 // size of the buffer of one answer, in bytes
	segmentEnd        = ".ndjson.zst"
)

func newSnapshots() *snapshots {
	return &snapshots{readers: make(chan struct{}, maxSegmentReaders), copiers: make(chan struct{}, maxCopyReaders)}
}

// ServeSnapshots makes the API serve the given snapshots. Without this call, the API answers with 404 for
// snapshots. ServeSnapshots must be called before Route.
func (a *API) ServeSnapshots(kept Snapshots) { a.snapshots.kept = kept }

// SnapshotLine returns a function for snapshot.Options.Show. The function shows assets in the current version,
// without the fields of the hidden groups, and prints times in zone.
func SnapshotLine(zone *time.Location, hidden []asset.Group) func(dst []byte, e registry.Entry) ([]byte, error) {
	v := publicVersion(routes.Current, hidden)
	all := fieldSet{all: true}
	return func(dst []byte, e registry.Entry) ([]byte, error) { return v.listed(dst, e, all, zone) }
}

func (a *API) routeSnapshot(r gin.IRoutes, v version) {
	routeRead(r, "/snapshot", httpserver.Handle(func(c *gin.Context) error { return a.manifest(c, v) }))
	routeRead(r, "/snapshot/segments/:file", httpserver.Handle(func(c *gin.Context) error { return a.segment(c, v) }))
}

// check returns a fault if there are no snapshots for a version.
func (s *snapshots) check(v version) error {
	switch {
	case v.name != routes.Current:
		const says = "Version %s has no snapshots; ask for the snapshot of version %s."
		return noSnapshot(says, v.name, routes.Current)
	case s.kept == nil:
		return noSnapshot("This registry keeps no snapshots; follow the feed from its beginning.")
	}
	return nil
}

func noSnapshot(format string, args ...any) error {
	return fault.New(fault.NotFound, fault.URL, "snapshot", format, args...)
}

// manifest answers with the newest manifest (docs/contract.md, "Snapshot").
func (a *API) manifest(c *gin.Context, v version) error {
	if err := a.snapshots.check(v); err != nil {
		return err
	}
	_, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	m, err := a.snapshots.kept.Newest()
	if errors.Is(err, snapshot.ErrNone) {
		return noSnapshot("There is no snapshot yet; ask again later, or follow the feed from its beginning.")
	}
	if err != nil {
		return err
	}
	if done, err := unchanged(c, tag(m.Begun, v, o)); done || err != nil {
		return err
	}
	text := a.snapshots.show(m, v, a.zone)
	if o.pretty || o.callback != "" {
		inside, leave, err := a.enter(c, int64(len(text)*copies))
		if err != nil {
			return err
		}
		defer leave()
		a = inside
	}
	return a.write(c, http.StatusOK, text, o)
}

// show returns the manifest in the form of an answer, and keeps it for the next request.
func (s *snapshots) show(m snapshot.Manifest, v version, zone *time.Location) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun != m.Begun {
		s.begun, s.text = m.Begun, showManifest(m, v, zone)
	}
	return s.text
}

func showManifest(m snapshot.Manifest, v version, zone *time.Location) []byte {
	segments := make(record.List, len(m.Segments))
	for i, s := range m.Segments {
		segments[i] = record.Object{
			{Name: "from", Value: s.From},
			{Name: "to", Value: s.To},
			{Name: "assets", Value: numberOf(s.Assets)},
			{Name: "bytes", Value: numberOf(s.Bytes)},
			{Name: "uncompressedBytes", Value: numberOf(s.Plain)},
			{Name: "sha256", Value: s.SHA256},
			{Name: "path", Value: v.prefix() + "/snapshot/segments/" + s.SHA256 + segmentEnd},
		}
	}
	data := record.Object{
		{Name: "position", Value: printPosition(m.Position, zone)},
		{Name: "date", Value: asset.FormatTime(m.Time(), zone)},
		{Name: "assets", Value: numberOf(m.Assets)},
		{Name: "bytes", Value: numberOf(m.Bytes)},
		{Name: "uncompressedBytes", Value: numberOf(m.Plain)},
	}
	if m.Files != nil {
		data = append(data, record.Member{Name: "files", Value: numberOf(m.Files.Count)},
			record.Member{Name: "fileBytes", Value: numberOf(m.Files.Bytes)})
	}
	if m.Checkpoint != "" {
		data = append(data, record.Member{Name: "checkpoint", Value: m.Checkpoint})
	}
	data = append(data, record.Member{Name: "segments", Value: segments})
	return record.Append(nil, record.Object{{Name: "data", Value: data}})
}

// numberOf returns an integer as a JSON number.
func numberOf[T int | int64](n T) record.Number {
	return record.Number(strconv.FormatInt(int64(n), 10))
}

// segment answers with the file of a segment, or a range of it.
func (a *API) segment(c *gin.Context, v version) error {
	if err := a.snapshots.check(v); err != nil {
		return err
	}
	hash, named := strings.CutSuffix(c.Param("file"), segmentEnd)
	if !named {
		return noSegment()
	}
	select {
	case a.snapshots.readers <- struct{}{}:
		defer func() { <-a.snapshots.readers }()
	default:
		return overloaded()
	}
	file, err := a.snapshots.kept.Segment(hash)
	if errors.Is(err, snapshot.ErrNone) {
		return noSegment()
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return a.sendFile(c, file, answeredFile{
		tag: `"` + hash + `"`, media: "application/zstd", caching: cacheParts, hasRanges: true, send: a.sendPart,
	})
}

func noSegment() error {
	return fault.New(fault.NotFound, fault.URL, "segment", "There is no such segment any more; read the manifest again.")
}

// answeredFile says how a file is sent as an answer.
type answeredFile struct {
	tag, media, caching string
	hasRanges           bool // an answer may be a range of the file
	send                func(c *gin.Context, part *io.SectionReader)
}

// sendFile sends a file that never changes, or the range that the header Range asks for (RFC 9110, 14).
func (a *API) sendFile(c *gin.Context, file *os.File, as answeredFile) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("send file: %w", err)
	}
	c.Header("Cache-Control", as.caching)
	if done, err := unchanged(c, as.tag); done || err != nil {
		return err
	}
	part := httpserver.ByteRange{Length: info.Size()}
	if as.hasRanges {
		part, err = httpserver.RangeOf(c.Request, as.tag, info.Size())
	}
	if err != nil {
		c.Writer.Header().Del("ETag")
		c.Header("Content-Range", fmt.Sprintf("bytes */%d", info.Size()))
		return err
	}
	h := c.Writer.Header()
	h.Set("Content-Type", as.media)
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Length", strconv.FormatInt(part.Length, 10))
	if part.IsAsked {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.First, part.First+part.Length-1, info.Size()))
		c.Status(http.StatusPartialContent)
	}
	if c.Request.Method != http.MethodHead {
		as.send(c, io.NewSectionReader(file, part.First, part.Length))
	}
	return nil
}

// sendPart sends a range of a file as fast as the client reads it.
func (a *API) sendPart(c *gin.Context, part *io.SectionReader) {
	sender := httpserver.NewSender(c.Writer, a.pace)
	if _, err := io.CopyBuffer(sender, part, make([]byte, segmentBuffer)); err != nil {
		_ = c.Error(fmt.Errorf("send segment: %w", err)) // not sent to the client: the log shows it
		panic(http.ErrAbortHandler)                      // end the connection, because the answer is incomplete
	}
}
