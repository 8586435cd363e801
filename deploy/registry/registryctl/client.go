package registryctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

const (
	callTimeout = 60 * time.Second
	maxAnswer   = 64 << 20 // bytes
)

// errNoKey is returned by calls that need a key, when there is none.
var errNoKey = errors.New("no API key: give one in the config file, in the environment or as a flag (registryctl --help)")

// send makes a request and returns the body of the answer, or as an error what
// the registry says is wrong.
func send(ctx context.Context, method, address, key string, header http.Header, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the address %q is none", address)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if key != "" {
		req.SetBasicAuth(key, "")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the registry does not answer: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return text, nil
	}
	var failure struct{ Errors []fault.Detail }
	if err := json.Unmarshal(text, &failure); err != nil || len(failure.Errors) == 0 {
		return nil, fmt.Errorf("answered %s, by something that is not the registry", resp.Status)
	}
	said := make([]string, len(failure.Errors))
	for i, d := range failure.Errors {
		said[i] = fmt.Sprintf("%s %s: %s", d.Location, d.Name, d.Description)
	}
	return nil, fmt.Errorf("%s: %s", resp.Status, strings.Join(said, "; "))
}

// call calls the admin API. The question is sent as JSON unless it is nil.
func call[T any](ctx context.Context, p *program, method, path string, query url.Values, question any) (answer adminapi.Response[T], err error) {
	if p.AdminKey == "" {
		return answer, errNoKey
	}
	var body []byte
	if question != nil {
		if body, err = json.Marshal(adminapi.Request[any]{Data: question}); err != nil {
			return answer, fmt.Errorf("encode question: %w", err)
		}
	}
	text, err := send(ctx, method, strings.TrimSuffix(p.AdminURL, "/")+adminapi.Prefix+path+"?"+query.Encode(), p.AdminKey, nil, body)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, errors.New("the answer is not the admin API's")
	}
	return answer, nil
}

// all calls for every page of a list.
func all[T any](ctx context.Context, p *program, path string, query url.Values, visit func([]T)) error {
	for {
		page, err := call[[]T](ctx, p, http.MethodGet, path, query, nil)
		if err != nil {
			return err
		}
		visit(page.Data)
		if page.Next == "" {
			return nil
		}
		query.Set("after", page.Next)
	}
}
