package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/errs"
	"asset-registry/shared/export"
	"asset-registry/shared/fair"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/isotime"
	"asset-registry/shared/query"
	"asset-registry/shared/routes"
)

// The bounds of exports (docs/data.md, "Bounds").
const (
	exportRows   = 10_000
	exportPage   = 100             // assets in one page of the search
	exportAtOnce = 4               // exports of one gateway at the same time
	exportWithin = 5 * time.Minute // time for a whole export
	exportBytes  = 256 << 20       // bytes of all assets of one export
	exportTries  = 5               // maximum number of tries of a read while the registry is too busy
	exportRead   = 5 * time.Second // time for one read
	exportChunk  = 256 << 10       // bytes of assets after which they are written
	searchBytes  = 4 << 20         // bytes of the answer to a search
	assetBytes   = 8 << 20         // bytes of one asset
)

// exportPart says how many bytes of a file are sent in one part, and how long a client may take for a part.
var exportPart = httpserver.Pace{Bytes: 64 << 10, Within: 10 * time.Second, All: exportWithin}

// ownOfExport has the parameters of a search that an export sets itself.
var ownOfExport = []string{"limit", "search_after", "facets", "facet_limit"}

// export answers with the assets that a search finds, as a file (docs/contract.md, "Exports"). It reads the
// assets as an anonymous reader, so the file never has hidden fields.
//
// With a language, the file is for people.
func (a *API) export(form export.Form, lang string) handler {
	return func(c *gin.Context) error {
		httpserver.Aside(c)
		httpserver.Long(c)
		sent, faults := exportQuery(c.Request.URL.RawQuery)
		ctx, cancel := context.WithTimeout(c.Request.Context(), exportWithin)
		defer cancel()
		e := exporting{API: a, ctx: ctx, caller: a.nameOf(c), out: &parts{w: c.Writer}, more: a.morePages(client(c))}
		found, err := e.foundIDs(sent)
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Invalid {
			faults = append(faults, f.Details...)
		}
		if len(faults) > 0 {
			return &fault.Error{Kind: fault.Invalid, Details: faults}
		}
		if err != nil {
			return err
		}
		// While the assets cannot be read, the answer is a refusal. After the header, it could only break off.
		if len(found.Data) > 0 && c.Request.Method != http.MethodHead {
			if e.first, err = e.assetOf(found.Data[0].ID); fault.KindOf(err) == fault.Unavailable {
				return err
			}
		}
		form, name, base := form, "assets", a.baseURL(c.Request)
		if found.Total > exportRows {
			name = fmt.Sprintf("assets-first-%d-of-%d", exportRows, found.Total)
		}
		disposition := fmt.Sprintf("attachment; filename=%q", name+"."+form.Name)
		if lang != "" {
			people := export.People{Lang: lang, Kyiv: isotime.Kyiv(), Base: base, Query: maps.Clone(sent), Total: found.Total,
				Licence: a.config.Settings.Data.DataLicence, Now: time.Now()}
			form = people.Form(form.Name)
			coded := strings.Replace(name, "assets", people.Name(), 1) + "." + form.Name
			disposition += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(coded), "+", "%20")
		} else {
			form = form.With(base)
		}
		h := c.Writer.Header()
		h.Set("Content-Type", form.ContentType)
		h.Set("Content-Disposition", disposition)
		h.Set("Cache-Control", "no-store")
		if steps := found.Interpreted.Steps; len(steps) > 0 {
			h.Set(httpserver.InterpretedHeader, strings.Join(steps, ", "))
		}
		h.Set(httpserver.TotalHeader, strconv.FormatInt(found.Total, 10))
		c.Status(http.StatusOK)
		if c.Request.Method == http.MethodHead {
			c.Writer.WriteHeaderNow()
			return nil
		}
		if err := e.run(form, sent, found); err != nil {
			_ = c.Error(err)            // for the log; gin returns its argument
			panic(http.ErrAbortHandler) // ends the connection, so that no client believes the file is complete
		}
		return nil
	}
}

// exportQuery returns the parameters for the search of an export, and the faults that the search service cannot see.
func exportQuery(raw string) (url.Values, []fault.Detail) {
	sent, faults := query.Read(raw, query.Params{})
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if strings.HasPrefix(name, "opt_") || slices.Contains(ownOfExport, name) {
			delete(sent, name)
			faults = append(faults, fault.Detail{Location: fault.Query, Name: name,
				Description: "An export has no such parameter; leave it out."})
		}
	}
	sent.Set("limit", strconv.Itoa(exportPage))
	if len(faults) > 0 {
		sent.Set("limit", "0") // the search names the other faults
	}
	return sent, faults
}

// exporting is an export that runs.
type exporting struct {
	*API
	ctx    context.Context
	caller string // for package fair
	out    *parts
	more   func() bool // counts the next page of the search; false: the limits do not admit it now
	left   int64       // how many bytes of assets may still be read

	chunk      [][]byte // assets that were read and are not written yet
	chunkBytes int

	first []byte // the first asset; nil: it was not found, or the file has it already
}

// run writes the file. The argument `found` is the first page of the search. After each page, run rests for as
// long as it has worked. So an export takes at most half of the time of one processor.
func (e *exporting) run(form export.Form, sent url.Values, found foundIDs) error {
	file, err := form.Open(e.out)
	if err != nil {
		return err
	}
	e.left = exportBytes
	written := map[string]bool{} // needed, because an asset that changes meanwhile may be found twice
	for {
		begun, sending := time.Now(), e.out.sending
		for _, hit := range found.Data {
			if written[hit.ID] || len(written) == exportRows {
				continue
			}
			written[hit.ID] = true
			if err := e.add(file, hit.ID); err != nil {
				return err
			}
		}
		if err := e.write(file); err != nil {
			return err
		}
		if found.Next.After == "" || len(written) == exportRows {
			if err := file.Close(); err != nil {
				return err
			}
			return e.out.flush()
		}
		if err := e.rest(time.Since(begun) - (e.out.sending - sending)); err != nil {
			return err
		}
		for !e.more() {
			if err := e.rest(time.Second); err != nil {
				return err
			}
		}
		sent.Set("search_after", found.Next.After)
		if found, err = e.foundIDs(sent); err != nil {
			return err
		}
	}
}

// add reads an asset, and writes what was read if it is much. It skips an asset that no longer exists.
func (e *exporting) add(file *export.Export, id string) error {
	asset, err := e.first, error(nil)
	if e.first = nil; asset == nil {
		asset, err = e.assetOf(id)
	}
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if e.left -= int64(len(asset)); e.left < 0 {
		return fmt.Errorf("the assets of an export have more than %d bytes", exportBytes)
	}
	e.chunk, e.chunkBytes = append(e.chunk, asset), e.chunkBytes+len(asset)
	if e.chunkBytes < exportChunk {
		return nil
	}
	return e.write(file)
}

// write writes the assets that were read to the file, in a place, and then sends what is ready.
func (e *exporting) write(file *export.Export) error {
	end, err := e.config.Places.Acquire(e.ctx, e.caller, 1)
	for try := 1; errors.Is(err, fair.ErrFull) && try < exportTries; try++ {
		end, err = e.config.Places.Acquire(e.ctx, e.caller, 1)
	}
	if err != nil {
		return fmt.Errorf("wait for a place: %w", err)
	}
	defer end()
	for _, asset := range e.chunk {
		var body struct {
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(asset, &body); err != nil {
			return fmt.Errorf("read an asset: %w", err)
		}
		read, isFound, err := export.Read(body.Data)
		if err == nil && isFound {
			err = file.Add(read)
		}
		if err != nil {
			return err
		}
	}
	e.chunk, e.chunkBytes = nil, 0
	end() // a slow client must not hold the place
	if len(e.out.kept) < exportPart.Bytes {
		return nil
	}
	return e.out.flush()
}

// assetOf returns an asset as an anonymous caller reads it.
func (e *exporting) assetOf(id string) ([]byte, error) {
	return e.patiently(e.ctx, func(ctx context.Context) ([]byte, error) {
		path := routes.Prefix(routes.Current) + "/assets/" + url.PathEscape(id)
		return e.config.Assets.For(e.caller).Read(ctx, path, nil, assetBytes)
	})
}

// rest waits for the given time. It returns an error if the client leaves or the gateway ends.
func (e *exporting) rest(within time.Duration) error {
	select {
	case <-e.ctx.Done():
		return e.ctx.Err()
	case <-e.ending:
		return errEnding
	case <-time.After(within):
		return nil
	}
}

// errEnding is the error of an export that is cut short because the gateway ends.
var errEnding = errors.New("the gateway ends")

// foundIDs is one page of the result of a search.
type foundIDs struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
	Total       int64 `json:"total"`
	Interpreted struct {
		Steps []string `json:"steps"`
	} `json:"interpreted"`
	Next struct {
		After string `json:"search_after"`
	} `json:"next_page"`
}

// foundIDs searches as an anonymous caller, and returns one page.
func (e *exporting) foundIDs(sent url.Values) (found foundIDs, err error) {
	body, err := e.patiently(e.ctx, func(ctx context.Context) ([]byte, error) {
		return e.config.Search.For(e.caller).Read(ctx, routes.Prefix(routes.Current)+routes.Search, sent, searchBytes)
	})
	if err != nil {
		return found, err
	}
	err = json.Unmarshal(body, &found)
	return found, errs.In(err, "read the answer to a search")
}

// patiently calls the function `read`. If a service is too busy, it calls the function again after a second.
func (a *API) patiently(ctx context.Context, read func(context.Context) ([]byte, error)) (body []byte, err error) {
	for try := 1; ; try++ {
		within, cancel := context.WithTimeout(ctx, exportRead)
		body, err = read(within)
		cancel()
		if fault.KindOf(err) != fault.Unavailable || try == exportTries {
			return body, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-a.ending:
			return nil, err
		case <-time.After(time.Second):
		}
	}
}

// peoplesFiles has the files of a search for people: the languages by their paths, and the endings behind them.
var peoplesFiles = func() map[string][2]string {
	all := map[string][2]string{}
	for _, lang := range []string{"uk", "en"} {
		for _, ending := range export.Endings {
			all["/"+lang+routes.Search+"."+ending] = [2]string{lang, ending}
		}
	}
	return all
}()

// orPeoplesFile returns a handler of pages that makes the files of a search for people besides.
func (a *API) orPeoplesFile(page gin.HandlerFunc) gin.HandlerFunc {
	files := map[string]gin.HandlerFunc{}
	for path, of := range peoplesFiles {
		files[path] = a.pipeline(route{class: routes.List, stored: true, share: a.oneExport(),
			answer: a.export(export.Form{Name: of[1]}, of[0])})
	}
	return func(c *gin.Context) {
		if file, is := files[c.Request.URL.Path]; is {
			file(c)
			return
		}
		page(c)
	}
}

// oneExport gives each caller one export at a time.
func (a *API) oneExport() step {
	return a.share(a.exports, a.nameOf, "You have %d export under way; finish it first.")
}

// parts is an io.Writer that keeps the bytes of a file until they are sent. It ends the connection of a client that is
// too slow to receive a part.
type parts struct {
	w       http.ResponseWriter
	kept    []byte
	sending time.Duration // how long sending has taken in all
}

func (p *parts) Write(text []byte) (int, error) {
	p.kept = append(p.kept, text...)
	return len(text), nil
}

// flush sends the bytes in the field `kept`. It uses a new sender, which sets a new deadline, because much time may
// have passed since the last part.
func (p *parts) flush() error {
	begun := time.Now()
	_, err := httpserver.NewSender(p.w, exportPart).Write(p.kept)
	p.kept, p.sending = p.kept[:0], p.sending+time.Since(begun)
	return err
}

// formOf returns the form of an export, by the pattern of its route.
func formOf(pattern string) (export.Form, bool) {
	name, isExport := strings.CutPrefix(pattern, routes.Search+".")
	at := slices.IndexFunc(export.Searches, func(f export.Form) bool { return f.Name == name })
	if !isExport || at < 0 {
		return export.Form{}, false
	}
	return export.Searches[at], true
}
