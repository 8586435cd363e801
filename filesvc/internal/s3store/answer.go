package s3store

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxRoot is the maximum number of bytes before the first element of a list.
const maxRoot = 4 << 10

// errAnswer is returned for an answer that no store would give to the request.
var errAnswer = errors.New("the answer of the store does not fit the request")

// checked compares each answer of the store with its request (docs/architecture.md, "Answers of others"). The client of
// the store compares little: it takes any XML for an empty list, and the whole object for a part of it.
type checked struct{ next http.RoundTripper }

func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices { // the client of the store reads refusals
		return resp, err
	}
	switch query := r.URL.Query(); {
	case query.Has("list-type"):
		err = checkList(resp, "ListBucketResult")
	case query.Has("versions"):
		err = checkList(resp, "ListVersionsResult")
	case r.URL.RawQuery == "" && r.Method != http.MethodDelete:
		err = checkObject(r, resp)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s, status %d: %w", errAnswer, r.Method, resp.StatusCode, err),
			resp.Body.Close())
	}
	return resp, nil
}

// checkObject checks the answer to a GET, HEAD or PUT of an object. Each of them has the tag of the object. A part that
// was asked for ends with the object.
func checkObject(r *http.Request, resp *http.Response) error {
	part, isPart := resp.Header.Get("Content-Range"), resp.StatusCode == http.StatusPartialContent
	asked := r.Header.Get("Range")
	switch coding := resp.Header.Get("Content-Encoding"); {
	case resp.Header.Get("ETag") == "":
		return errors.New("it has no ETag")
	case r.Method == http.MethodPut:
		return nil
	case coding != "" && coding != "aws-chunked": // some stores keep the coding of the upload
		return fmt.Errorf("it has the coding %.40q", coding)
	case resp.ContentLength < 0:
		return errors.New("it has no length")
	case asked == "" && !isPart:
		return nil
	}
	var want, first, last, size int64
	if _, err := fmt.Sscanf(asked, "bytes=%d-", &want); err != nil || !isPart {
		return fmt.Errorf("%q was asked for", asked)
	}
	n, err := fmt.Sscanf(part, "bytes %d-%d/%d", &first, &last, &size)
	if err != nil || n != 3 || first != want || last != size-1 || resp.ContentLength != size-first {
		return fmt.Errorf("%q was asked for, and it has %.80q with %d bytes", asked, part, resp.ContentLength)
	}
	return nil
}

// checkList checks that the body of an answer is XML with this root.
func checkList(resp *http.Response, root string) error {
	var read bytes.Buffer
	from := xml.NewDecoder(io.TeeReader(io.LimitReader(resp.Body, maxRoot), &read))
	for {
		token, err := from.Token()
		if err != nil {
			return fmt.Errorf("it is no %s: %w", root, err)
		}
		if begin, isBegin := token.(xml.StartElement); isBegin && begin.Name.Local != root {
			return fmt.Errorf("it is a %.40q, want a %s", begin.Name.Local, root)
		} else if isBegin {
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(&read, resp.Body), resp.Body}
			return nil
		}
	}
}
