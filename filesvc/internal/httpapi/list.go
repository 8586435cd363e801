package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/query"
)

// listed is a file in a list.
type listed struct {
	ID        string    `json:"id"`
	Broker    string    `json:"broker"`
	State     string    `json:"state"`
	Hash      string    `json:"hash,omitempty"`
	SHA256    string    `json:"sha256,omitempty"`
	Size      int64     `json:"size"`
	Title     string    `json:"title,omitempty"`
	Format    string    `json:"format,omitempty"`
	Touched   time.Time `json:"date"`
	Named     bool      `json:"named"` // a document has referred to the file
	RemovedBy string    `json:"removed_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// list answers GET /get. It lists the files of the caller's broker, and for an administrator all files.
func (a *API) list(c *gin.Context) error {
	by := httpserver.Caller(c)
	if by.IsAnonymous() {
		return fault.New(fault.Unauthorized, fault.Header, "Authorization", "An API key is needed.")
	}
	sent, limit, err := readPage(c, file.MaxList, "after", "limit", "broker")
	if err != nil {
		return err
	}
	found, next, err := a.Files.List(c.Request.Context(), by, sent.Get("broker"), sent.Get("after"), limit)
	if err != nil {
		return err
	}
	data := []listed{}
	for _, f := range found {
		one := listed{
			ID: f.ID, Broker: f.Broker, State: string(f.State), SHA256: f.SHA256, Size: f.Size, Title: f.Title,
			Touched: f.Touched, Named: f.Named,
		}
		if f.MD5 != "" {
			one.Hash = hashType + f.MD5
		}
		if f.SHA256 != "" {
			one.Format = format(f)
		}
		if by.Role == identity.Administrator {
			one.RemovedBy, one.Reason = f.RemovedBy, f.Reason
		}
		data = append(data, one)
	}
	return a.answer(c, http.StatusOK, pageOf(c, data, next, limit))
}

// readPage returns the parameters of a request for a page of a list, and its limit. Without one, the limit is the
// argument `most`, the largest one. The error names every fault.
func readPage(c *gin.Context, most int, names ...string) (url.Values, int, error) {
	sent, faults := query.Read(c.Request.URL.RawQuery, query.Params{Names: names})
	limit := most
	if text := sent.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			faults = append(faults, fault.Detail{Location: fault.Query, Name: "limit",
				Description: fmt.Sprintf("The limit must be a number from 1 to %d.", most)})
		}
		limit = min(n, most)
	}
	if len(faults) > 0 {
		return nil, 0, &fault.Error{Kind: fault.Invalid, Details: faults}
	}
	return sent, limit, nil
}

// pageOf returns the answer to a request for a list. If the argument `next` is "", the answer has no link to a next
// page.
func pageOf(c *gin.Context, data any, next string, limit int) gin.H {
	answer := gin.H{"data": data}
	if next != "" {
		q := url.Values{"after": {next}, "limit": {strconv.Itoa(limit)}}
		if broker := c.Query("broker"); broker != "" {
			q.Set("broker", broker)
		}
		answer["next_page"] = gin.H{"after": next, "path": c.FullPath() + "?" + q.Encode()}
	}
	return answer
}

// listRemoved answers GET /get/removed with the ids of the files that were taken down.
func (a *API) listRemoved(c *gin.Context) error {
	sent, limit, err := readPage(c, file.MaxRemoved, "after", "limit")
	if err != nil {
		return err
	}
	after := sent.Get("after")
	if after != "" && !filelink.IsID(after) {
		return fault.New(fault.Invalid, fault.Query, "after", "It must be the id of a file: 32 digits from 0 to f.")
	}
	ids, next, err := a.Files.ListRemoved(c.Request.Context(), after, limit)
	if err != nil {
		return err
	}
	data := []gin.H{}
	for _, id := range ids {
		data = append(data, gin.H{"id": id})
	}
	return a.answer(c, http.StatusOK, pageOf(c, data, next, limit))
}
