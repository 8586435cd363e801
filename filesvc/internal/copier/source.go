package copier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/filelink"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/sleep"
)

// Source is the upstream.
type Source struct {
	HTTP      *http.Client // follows no redirect
	URL       string       // address of the upstream, without a slash at its end
	UserAgent string
	Pace      httpserver.Pace // slowest pace that is accepted for answers
}

const (
	maxPage     = 1 << 20     // bytes of a page of removals
	mostRemoved = 1_000_000   // maximum number of removals that are accepted from an upstream
	mostTries   = 30          // tries of a request that the upstream asks to repeat later
	longestWait = time.Minute // longest pause before a repetition that the upstream can ask for
	maxType     = 255         // bytes of a media type
)

// errAnswer is returned for an answer that no registry would send.
var errAnswer = errors.New("the upstream sent something else than asked for")

// errRemoved is returned for a file that the upstream has removed. The list of removals will have it.
var errRemoved = errors.New("the upstream has removed the file")

// errSlow ends a request whose answer comes too slowly.
var errSlow = errors.New("the upstream sends too slowly")

// answer is an answer of the upstream. Reading it fails if it comes more slowly than the pace.
type answer struct {
	*http.Response
	ctx  context.Context
	stop context.CancelCauseFunc
	late *time.Timer
	pace httpserver.Pace
	came int // bytes that have come since the timer was set
}

// get sends a request. If the upstream is busy, it repeats the request after the time that the upstream asks
// for. The caller closes the answer.
func (s Source) get(ctx context.Context, path string, query url.Values) (*answer, error) {
	for try := 1; ; try++ {
		a, err := s.ask(ctx, path, query)
		if err != nil {
			return nil, err
		}
		if a.StatusCode == http.StatusOK && a.Header.Get("Content-Encoding") == "" {
			return a, nil
		}
		a.Close()
		if a.StatusCode == http.StatusGone {
			return nil, errRemoved
		}
		isBusy := a.StatusCode == http.StatusTooManyRequests
		if !isBusy || try == mostTries || !sleep.For(ctx, retryAfter(a.Response)) {
			return nil, fmt.Errorf("%w: %s has the status %d, coding %.20q", errAnswer, path, a.StatusCode,
				a.Header.Get("Content-Encoding"))
		}
	}
}

// ask sends a request once.
func (s Source) ask(ctx context.Context, path string, query url.Values) (*answer, error) {
	ctx, stop := context.WithCancelCause(ctx)
	a := &answer{ctx: ctx, stop: stop, pace: s.Pace, late: time.AfterFunc(s.Pace.Within, func() { stop(errSlow) })}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err == nil {
		r.URL.RawQuery = query.Encode()
		r.Header.Set("User-Agent", s.UserAgent)
		r.Header.Set("Accept-Encoding", "identity")
		a.Response, err = s.HTTP.Do(r)
	}
	if err != nil {
		a.late.Stop()
		err = errors.Join(err, context.Cause(ctx))
		stop(nil)
		return nil, err
	}
	return a, nil
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.Body.Read(p)
	if a.came += n; a.came >= a.pace.Bytes {
		a.came = 0
		a.late.Reset(a.pace.Within)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = errors.Join(err, context.Cause(a.ctx))
	}
	return n, err
}

// Close ends the request.
func (a *answer) Close() {
	a.late.Stop()
	a.stop(nil)
	_ = a.Body.Close() // the rest is not needed
}

// retryAfter returns the time to wait before a request is repeated.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		seconds = 1
	}
	return min(time.Duration(seconds)*time.Second, longestWait)
}

// removed returns the next page of ids of removed files, all greater than the argument `after`, and whether more
// may follow.
func (s Source) removed(ctx context.Context, after string) (ids []string, more bool, err error) {
	q := url.Values{"limit": {strconv.Itoa(file.MaxRemoved)}}
	if after != "" {
		q.Set("after", after)
	}
	resp, err := s.get(ctx, filelink.RemovedPath, q)
	if err != nil {
		return nil, false, err
	}
	defer resp.Close()
	var list struct {
		Data []struct{ ID string }
		Next *struct{} `json:"next_page"`
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	err = json.NewDecoder(io.LimitReader(resp, maxPage)).Decode(&list)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("%w: the removals after %q: %w", errAnswer, after, err)
	case kind != "application/json" || list.Data == nil:
		return nil, false, fmt.Errorf("%w: the removals after %q are no list, with the type %.80q", errAnswer, after, kind)
	}
	for _, f := range list.Data {
		if !filelink.IsID(f.ID) || f.ID <= after {
			return nil, false, fmt.Errorf("%w: the removals have %.50q after %q", errAnswer, f.ID, after)
		}
		after = f.ID
		ids = append(ids, f.ID)
	}
	return ids, list.Next != nil && len(ids) > 0, nil
}

// open requests the bytes of a file. The reader returns an error instead of io.EOF if it had more or fewer bytes
// than the file has. The caller closes the answer.
func (s Source) open(ctx context.Context, f file.File) (*answer, io.Reader, error) {
	a, err := s.get(ctx, filelink.GetPath+"/"+f.ID, nil)
	if err != nil {
		return nil, nil, err
	}
	if a.ContentLength >= 0 && a.ContentLength != f.Size {
		a.Close()
		return nil, nil, fmt.Errorf("%w: the file has %d bytes, and its document says %d", errAnswer, a.ContentLength, f.Size)
	}
	return a, &exact{a, f.Size}, nil
}

// exact reads the expected number of bytes. It also tries to read one more byte, to check that nothing follows.
type exact struct {
	from io.Reader
	left int64
}

func (e *exact) Read(p []byte) (int, error) {
	n, err := e.from.Read(p[:min(int64(len(p)), e.left+1)])
	switch e.left -= int64(n); {
	case e.left < 0:
		return 0, fmt.Errorf("%w: the file has more bytes than its document says", errAnswer)
	case errors.Is(err, io.EOF) && e.left > 0:
		return n, fmt.Errorf("%w: the file lacks %d bytes", errAnswer, e.left)
	}
	return n, err
}

// describe sets the title and the declared type of a file from the headers of an answer. So a mirror shows the
// copy as the upstream shows the file, as far as that is safe.
func describe(f *file.File, h http.Header) {
	f.Declared, _, _ = mime.ParseMediaType(h.Get("Content-Type"))
	if len(f.Declared) > maxType {
		f.Declared = ""
	}
	kind, parameters, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	f.Title = file.Title(parameters["filename"])
	detected, _, _ := mime.ParseMediaType(f.Detected)
	is := filelink.PictureType(detected)
	if kind == "attachment" && is != "" && filelink.PictureType(f.Declared) == is {
		f.Declared = "" // a picture is an attachment only if its upload declared a different type, or none
	}
}
